"""Quantities of signals on batches whose answers are known."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from rlcredit.formulas.uncertainty import surprisal
from rlcredit.oracle.credit_estimate import true_credit
from studies.credit_patterns import signal_quantities


def collect(rows):
    """Return the estimates of some rows, by tokens, subject and quantity, as far as a row has them."""
    return {tuple(row[key] for key in ("tokens", "subject", "quantity") if key in row): row["estimate"] for row in rows}


def make_batch(group_size=1, **fields) -> Any:
    """Return a batch without padding."""
    return SimpleNamespace(group_size=group_size, mask=torch.ones_like(fields["entropy"], dtype=torch.bool), **fields)


@pytest.fixture
def drawn():
    """Two prompts whose tokens are drawn exactly as often as their distributions say: 1/2 and 1/2, 3/4 and 1/4."""
    p = torch.tensor([0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0.75, 0.25])
    h = torch.tensor([math.log(2)] * 4 + [-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))] * 4)
    return make_batch(old_logprobs=p.log().expand(4, 8), entropy=h.expand(4, 8))


def test_entropy_and_noise_are_the_whole_variance_where_surprisal_averages_to_entropy(drawn):
    found = collect(signal_quantities.measure_variance_split(drawn, drawn.mask))
    s, h = surprisal(drawn.old_logprobs)[0].double(), drawn.entropy[0].double()
    assert found["entropy_share",] == pytest.approx(float(h.var(correction=0) / s.var(correction=0)), rel=1e-5)
    assert found["entropy_share",] + found["noise_share",] == pytest.approx(1, abs=1e-5)
    assert found["rest",] == pytest.approx(0, abs=1e-5)
    assert found["correlation",] == pytest.approx(found["entropy_share",] ** 0.5, rel=1e-4)


def test_tokens_chosen_by_what_was_drawn_leave_a_rest(drawn):
    likely = drawn.mask.clone()
    likely[:, 7] = False  # the token of probability 1/4
    assert abs(collect(signal_quantities.measure_variance_split(drawn, likely))["rest",]) > 0.05


def test_pairs_are_counted_by_hand():
    p = torch.tensor([[0.9, 0.5, 0.05, 0.9]])
    mask = torch.tensor([[True, True, True, False]])
    counts = signal_quantities.count_opposite_pairs(-p.log(), p * (1 - p), mask)
    # 0.9 and 0.5 in the same order; 0.05, with p(1-p) = 0.0475, is the most surprising and has the lowest
    assert counts.tolist() == [[3, 2, 2]]


def test_the_two_signals_order_three_tokens_oppositely_where_one_is_unlikely():
    p = torch.tensor([0.9, 0.5, 0.05]).expand(3, 3)
    found = collect(signal_quantities.measure_order(make_batch(old_logprobs=p.log(), entropy=p)))
    assert found["below_half",] == pytest.approx(1 / 3)
    assert found["opposite_pairs",] == pytest.approx(2 / 3)
    assert found["opposite_of_unlikely",] == 1
    assert found["rank_correlation",] == pytest.approx(-0.5)  # ranks 1, 2, 3 and 2, 3, 1
    # 0.105, 0.693, 2.996 and 0.09, 0.25, 0.0475: weights at beta 0.1 are linear in both
    assert found["weight_correlation",] == pytest.approx(-0.5058, abs=1e-3)


def test_pooling_takes_the_variance_inside_completions_and_leaves_that_between_them():
    s = torch.tensor([[0.2, 1.8, 0.4, 0.6], [1.0, 0.1, 1.2, 1.4]])
    plan = torch.tensor([[False, True, False, False], [False, True, False, False]])
    batch = make_batch(old_logprobs=-s, entropy=s)
    found = collect(signal_quantities.measure_pooling(batch, plan))
    assert found["execution", "before"] == pytest.approx(0.16 + 0.08 / 3, rel=1e-5)  # means 0.4 and 1.2
    assert found["execution", "after"] == pytest.approx(0.16, rel=1e-5)
    assert found["execution", "left"] == pytest.approx(0.16 / (0.16 + 0.08 / 3), rel=1e-5)
    assert found["planning", "before"] == found["planning", "after"] == pytest.approx(0.85**2, rel=1e-5)
    assert found["marked", "coverage"] == pytest.approx(1 / 4)


@pytest.fixture
def truth():
    """Four completions of four tokens: the second and the fourth token decide, everything else does nothing."""
    values = torch.tensor([0.5, 0.5, 1.0, 1.0, 0.0])
    samples = torch.arange(64)[None, :]
    right = (samples < 64 * values[:, None]).double().expand(4, 5, 64)
    return true_credit([0, 1, 2, 3], right, torch.ones(4, 4, dtype=torch.bool))


def test_a_score_that_is_high_on_what_decides_has_the_whole_area(truth):
    scores = {"low": torch.ones(4, 4), "high": torch.tensor([[0.0, 2.0, 1.0, 2.0]]).expand(4, 4)}
    found = collect(signal_quantities.measure_fork_areas(truth, scores, truth.mask, "low"))
    assert found == {("low", "area"): 0.5, ("high", "area"): 1.0, ("high", "area_beyond_low"): 0.5}


def test_forks_on_execution_tokens_are_lost_by_credit_that_is_flat_there(truth):
    plan = torch.tensor([[False, True, False, False]]).expand(4, 4)
    ledgers = {"GTPO": torch.tensor([[1.0, 3.0, 1.0, -3.0]]), "SEPA": torch.tensor([[1.0, 3.0, 1.0, 1.0]])}
    ledgers = {name: values.expand(4, 4) for name, values in ledgers.items()}
    found = collect(signal_quantities.measure_pooled_credit(truth, ledgers, plan))
    assert found["all", "GTPO", "area"] == 1.0
    assert found["all", "SEPA", "area"] == 0.75  # one fork of two above, one level with the others
    assert found["execution", "SEPA", "area"] == 0.5
    assert found["execution", "SEPA", "area_beyond_GTPO"] == -0.5
    assert found["execution", "true credit", "execution_forks"] == 0.5
    assert found["execution", "true credit", "execution_credit"] == pytest.approx(1 / 1.25)  # credit 0.5 and -1
    assert found["all", "GTPO", "cosine_within"] > found["all", "SEPA", "cosine_within"]


def test_pivots_are_the_tokens_above_the_mean_entropy_of_their_group(truth):
    entropy = torch.tensor([[0.0, 1.0, 1.0, 0.4]]).expand(4, 4)  # mean 0.6
    batch = make_batch(group_size=2, entropy=entropy, old_logprobs=-entropy)
    found = collect(signal_quantities.measure_pivots(batch, truth))
    assert (found["pivot", "pivots"], found["pivot", "forks"]) == (0.5, 0.5)
    assert (found["pivot", "forks_that_are_pivots"], found["pivot", "pivots_that_are_forks"]) == (0.5, 0.5)
    assert found["pivot score", "area_beyond_entropy"] == 0  # within one group the order is that of entropy
    assert_close(found["entropy", "area"], 0.625)  # pairs of a fork and another: 1 > 0, 1 = 1, 0.4 > 0, 0.4 < 1
