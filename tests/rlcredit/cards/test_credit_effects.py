"""How much credit is moved, and where to."""

import pytest
import torch

from rlcredit.cards.credit_effects import (
    classify_tokens,
    count_forward_passes,
    displaced_credit_shares,
    list_stack_warnings,
    measure_credit_effects,
)


def found(batch, name):
    return {one.name: one for one in measure_credit_effects(batch(name), batch("GRPO"))}


def test_a_common_factor_moves_nothing():
    ledger = torch.tensor([[0.5, -0.5], [1.0, 0.0]])
    assert displaced_credit_shares(3 * ledger, ledger) == (0.0, 0.0)


def test_the_opposite_sign_moves_all_of_it():
    ledger = torch.tensor([[0.5, 0.5], [-1.0, -1.0]])
    assert displaced_credit_shares(-ledger, ledger) == (1.0, 0.0)  # what each completion gets has changed


def test_credit_that_moves_inside_a_completion_stays_in_it():
    moved, within = displaced_credit_shares(
        torch.tensor([[1.0, 0.0], [-0.5, -0.5]]), torch.tensor([[0.5, 0.5], [-0.5, -0.5]])
    )
    assert (moved, within) == (0.25, 1.0)


def test_no_credit_on_either_side_is_no_difference():
    nothing, some = torch.zeros(2, 2), torch.ones(2, 2)
    assert displaced_credit_shares(nothing, nothing) == (0.0, 0.0)
    assert displaced_credit_shares(nothing, some) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("needs", "passes"),
    [
        ({"entropy"}, 0),
        ({"ref_logprobs"}, 1),
        ({"ref_logprobs", "ref_log_ratio"}, 2),
        ({"hidden"}, 1),
        ({"hidden", "lookahead", "ref_log_ratio"}, 4),
    ],
)
def test_facts_that_are_read_again_cost_passes(needs, passes):
    assert count_forward_passes(needs) == passes


def test_every_token_has_a_kind():
    assert classify_tokens([["7", " is", "=", "\n", ""], ["x2"]], 5).tolist() == [
        ["number", "word", "symbol", "space", "end"],
        ["number", "end", "end", "end", "end"],
    ]


@pytest.mark.slow
def test_gtpo_moves_credit_inside_completions_and_hicra_onto_them(batch):
    inside, onto = found(batch, "GTPO"), found(batch, "HICRA")
    assert inside["moved"].estimate > 0.01
    assert inside["moved_within"].estimate == pytest.approx(1.0)
    assert onto["moved_within"].estimate < 0.9


@pytest.mark.slow
def test_shares_on_kinds_add_up(batch):
    shares = [one.estimate for name, one in found(batch, "GTPO").items() if name.startswith("on_")]
    assert len(shares) >= 4
    assert sum(shares) == pytest.approx(1.0)


def test_the_baseline_moves_nothing(batch):
    itself = found(batch, "GRPO")
    assert (itself["moved"].estimate, itself["moved"].low, itself["moved"].high) == (0, 0, 0)
    assert list_stack_warnings(batch("GRPO")) == []


def test_a_mask_leaves_tokens_without_credit(batch):
    assert found(batch, "RandomMask")["without_credit"].estimate > 0.7
    assert found(batch, "GRPO")["without_credit"].estimate < 0.3


def test_no_credit_at_all_is_warned_of(batch, monkeypatch):
    base, judged = batch("GRPO"), batch("GTPO")
    monkeypatch.setattr(judged.rollout, "advantages", 0 * judged.rollout.advantages)
    assert list_stack_warnings(judged)[0] == "It gives no token of the batch any credit."
    assert next(measure_credit_effects(judged, base)).sentence == "No token is given any credit."
    assert list_stack_warnings(base) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_credit_that_is_the_log_probability_is_on_what_is_likely(batch, sign, monkeypatch):
    base, judged = batch("GRPO"), batch("GTPO")
    monkeypatch.setattr(judged.rollout, "advantages", sign * judged.rollout.old_logprobs.to(torch.float32))
    confidence = {one.name: one for one in measure_credit_effects(judged, base)}["confidence"]
    assert confidence.estimate == pytest.approx(sign, abs=1e-6)
    assert abs(confidence.baseline) < 0.9
