"""Every method of the other papers, held against a second derivation token by token in float64, on random batches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from callbacks.dense.canonical_gtpo import canonical_gtpo_advantages
from callbacks.dense.optimal_token_baseline import optimal_token_advantages
from callbacks.dense.prefix_baseline import prefix_baseline_advantages
from callbacks.dense.tempo import tempo_advantages
from callbacks.episode.grpos import grpo_s_advantages
from callbacks.episode.opo import opo_advantages
from callbacks.episode.soft_overlong import overlong_penalty
from callbacks.signals.bucket_normalization import bucket_normalized
from callbacks.signals.entropy_progress import entropy_progress
from callbacks.signals.process_signal import process_signal
from callbacks.tokens.conflict_mask import conflict_weights
from callbacks.tokens.eapo import eapo_advantages
from callbacks.tokens.entropy_advantage import entropy_advantages
from callbacks.tokens.entropy_gate import entropy_gate
from callbacks.tokens.gradient_size_mask import squared_gradient_sizes
from callbacks.tokens.ktae import key_token_credit
from callbacks.tokens.probability_weight import probability_weights
from callbacks.tokens.rsi_mask import relative_surprisal
from callbacks.tokens.stare import stare_weights
from callbacks.tokens.zero_variance_shaping import zero_variance_advantages
from rlcredit.credit.rollout import positional_progress
from rlcredit.formulas.prefix_statistics import prefix_statistics
from rlcredit.formulas.prefixes import companion_sums, prefix_values, shared_token_mask
from rlcredit.formulas.quadrants import high_entropy_mask, mutual_information, quadrant_masks
from rlcredit.formulas.token_grams import gram_scores
from rlcredit.formulas.value_estimates import generalized_advantages
from tests.conftest import make_rollout
from tests.contracts import references

G = 4


EPS = 1e-6


VERDICTS = [[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.5, 0.0]]


def batch(seed):
    """A rollout of two groups with random verdicts, and random credit that is sometimes zero."""
    generator = torch.Generator().manual_seed(seed)
    one, two = torch.randint(0, len(VERDICTS), (2,), generator=generator).tolist()
    rollout = make_rollout([*VERDICTS[one], *VERDICTS[two]], group_size=G, width=7, seed=seed)
    rollout.entropy = rollout.entropy + 0.01
    rollout.completion_ids = rollout.completion_ids % 3  # so few words that completions share prefixes
    rollout.advantages = torch.randn(rollout.mask.shape, generator=generator).where(rollout.mask, 0)
    rollout.advantages = rollout.advantages.where(torch.rand(rollout.mask.shape, generator=generator) > 0.2, 0)
    return rollout


def ragged(values, mask):
    return [row[kept].double().tolist() for row, kept in zip(values, mask)]


def companions_of(rollout):
    """Counts and sums of the completions that share each prefix."""
    return companion_sums(rollout.correct, rollout.judged, rollout.completion_ids, rollout.mask, G)


METHODS = {
    "canonical GTPO, own": (
        lambda r: canonical_gtpo_advantages(r.correct, r.entropy, r.mask, G, norm_set="own"),
        lambda r, t: references.expected_canonical_gtpo(r.correct.tolist(), t(r.entropy), G, 1.0, 0.1, "own"),
    ),
    "canonical GTPO, all": (
        lambda r: canonical_gtpo_advantages(r.correct, r.entropy, r.mask, G, alpha1=0.7, alpha2=0.3),
        lambda r, t: references.expected_canonical_gtpo(r.correct.tolist(), t(r.entropy), G, 0.7, 0.3, "all"),
    ),
    "GRPO-S, own": (
        lambda r: grpo_s_advantages(r.correct, r.entropy, r.mask, G, norm_set="own")[:, None].expand(r.mask.shape),
        lambda r, t: broadcast(references.expected_grpo_s(r.correct.tolist(), t(r.entropy), G, 1.0, 0.1, "own"), r),
    ),
    "GRPO-S, all": (
        lambda r: grpo_s_advantages(r.correct, r.entropy, r.mask, G)[:, None].expand(r.mask.shape),
        lambda r, t: broadcast(references.expected_grpo_s(r.correct.tolist(), t(r.entropy), G, 1.0, 0.1, "all"), r),
    ),
    "EntroAdv": (
        lambda r: entropy_advantages(r.advantages, r.entropy, 0.4, 2.0),
        lambda r, t: references.expected_entropy_advantage(t(r.advantages), t(r.entropy), 0.4, 2.0),
    ),
    "RSI": (
        lambda r: relative_surprisal(r.old_logprobs, r.entropy, EPS),
        lambda r, t: references.expected_rsi(t(r.old_logprobs), t(r.entropy), EPS),
    ),
    "RL-ZVP": (
        lambda r: zero_variance_advantages(r.advantages, r.entropy, r.correct, r.mask, G, 0.1),
        lambda r, t: references.expected_zero_variance_shaping(
            t(r.advantages), t(r.entropy), r.correct.tolist(), G, 0.1
        ),
    ),
    "STARE": (
        lambda r: stare_weights(r.signal, r.advantages, r.mask, 0.3, 1.1, 0.9),
        lambda r, t: references.expected_stare_weights(t(r.signal), t(r.advantages), 0.3, 1.1, 0.9),
    ),
    "OTB": (
        lambda r: optimal_token_advantages(r.correct, r.judged, r.old_logprobs, r.sum_pi_squared, r.mask, G),
        lambda r, t: references.expected_optimal_baseline(
            r.correct.tolist(), t(r.old_logprobs), t(r.sum_pi_squared), G
        ),
    ),
    "prefix baseline": (
        lambda r: prefix_baseline_advantages(r.correct, *companions_of(r), r.mask, G, shrink=2.0),
        lambda r, t: references.expected_prefix_baseline(r.correct.tolist(), t(r.completion_ids), G, 2.0),
    ),
    "prefix baseline without shrinkage": (
        lambda r: prefix_baseline_advantages(r.correct, *companions_of(r), r.mask, G, shrink=0.0),
        lambda r, t: references.expected_prefix_baseline(r.correct.tolist(), t(r.completion_ids), G, 0.0),
    ),
    "TEMPO": (
        lambda r: tempo_advantages(r.correct, prefix_values(r.correct, *companions_of(r), r.mask), r.mask, G),
        lambda r, t: references.expected_tempo(r.correct.tolist(), t(r.completion_ids), G),
    ),
    "shared states": (
        lambda r: r.advantages.where(shared_token_mask(r.completion_ids, r.mask, r.judged, G), 0),
        lambda r, t: references.expected_shared_states(t(r.advantages), t(r.completion_ids), G),
    ),
    "conflict weights": (
        lambda r: conflict_weights(r.advantages, r.completion_ids, r.mask, G, positive=2.0, negative=0.5),
        lambda r, t: references.expected_conflict_weights(t(r.advantages), t(r.completion_ids), G, 2.0, 0.5),
    ),
    "KTAE": (
        lambda r: key_token_credit(r.verdicts, r.completion_ids, r.mask, G, frequency=1.0),
        lambda r, t: references.expected_ktae(r.correct.tolist(), t(r.completion_ids), G, 1.0),
    ),
    "KTAE without frequencies": (
        lambda r: key_token_credit(r.verdicts, r.completion_ids, r.mask, G, frequency=0.0),
        lambda r, t: references.expected_ktae(r.correct.tolist(), t(r.completion_ids), G, 0.0),
    ),
    "STRIDE": (
        lambda r: gram_scores(r.verdicts, r.completion_ids, r.entropy, r.turn, G, length=2),
        lambda r, t: references.expected_gram_scores(r.correct.tolist(), t(r.completion_ids), t(r.entropy), G, 2),
    ),
    "STRIDE of single tokens": (
        lambda r: gram_scores(r.verdicts, r.completion_ids, r.entropy, r.turn, G, length=1),
        lambda r, t: references.expected_gram_scores(r.correct.tolist(), t(r.completion_ids), t(r.entropy), G, 1),
    ),
    "gradient sizes": (
        lambda r: squared_gradient_sizes(r.advantages, r.old_logprobs, r.sum_pi_squared),
        lambda r, t: references.expected_gradient_sizes(t(r.advantages), t(r.old_logprobs), t(r.sum_pi_squared)),
    ),
    "OPO": (
        lambda r: opo_advantages(r.correct, r.mask.sum(-1), G)[:, None].expand(r.mask.shape),
        lambda r, t: broadcast(references.expected_opo(r.correct.tolist(), r.mask.sum(-1).tolist(), G), r),
    ),
    "probability weights": (
        lambda r: probability_weights(r.old_logprobs, alpha=0.3),
        lambda r, t: references.expected_probability_weights(t(r.old_logprobs), 0.3),
    ),
    "EAPO": (
        lambda r: eapo_advantages(r.advantages, r.entropy, r.mask, G, 0.2, 2.0),
        lambda r, t: references.expected_eapo(t(r.advantages), t(r.entropy), G, 0.2, 2.0),
    ),
    "process signal": (
        lambda r: process_signal(r.ref_log_ratio, r.mask, 0.1),
        lambda r, t: references.expected_process_signal(t(r.old_logprobs), t(r.ref_logprobs), 0.1),
    ),
    "positional progress": (
        lambda r: positional_progress(r.mask),
        lambda r, t: references.expected_position_progress(r.mask.sum(-1).tolist()),
    ),
    "entropy progress": (
        lambda r: entropy_progress(r.entropy, r.mask),
        lambda r, t: references.expected_entropy_progress(t(r.entropy)),
    ),
    "buckets": (
        lambda r: bucket_normalized(r.advantages, r.progress, r.mask, G, 3),
        lambda r, t: references.expected_bucket_normalization(t(r.advantages), t(r.progress), G, 3),
    ),
    "GAE": (
        lambda r: generalized_advantages(r.correct, r.entropy, r.mask, 0.7),
        lambda r, t: references.expected_generalized_advantages(r.correct.tolist(), t(r.entropy), 0.7),
    ),
    "prefixes": (
        lambda r: prefix_statistics(-2 * r.old_logprobs, r.mask) @ torch.tensor([1.0, 0.2, -0.5, 3.0, -7.0]),
        lambda r, t: references.expected_prefix_statistics(t(-2 * r.old_logprobs), [1.0, 0.2, -0.5, 3.0, -7.0]),
    ),
    "gate": (
        lambda r: entropy_gate(r.entropy, r.mask, G, 5.0),
        lambda r, t: references.expected_entropy_gate(t(r.entropy), G, 5.0),
    ),
}


def broadcast(rows, rollout):
    return [[value] * int(length) for value, length in zip(rows, rollout.mask.sum(-1))]


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_both_derivations_agree(method, seed):
    rollout = batch(seed)
    ours, theirs = METHODS[method]
    expected = theirs(rollout, lambda values: ragged(values, rollout.mask))
    for mine, other in zip(ragged(ours(rollout), rollout.mask), expected):
        assert mine == pytest.approx(other, abs=2e-5, rel=2e-5)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 60))
def test_both_penalties_for_length_agree(cache, more, length):
    theirs = references.expected_soft_overlong([length], cache + more, cache)
    assert overlong_penalty(torch.tensor([float(length)]), cache + more, cache).tolist() == pytest.approx(theirs)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_both_divisions_into_quadrants_agree(seed):
    rollout = batch(seed)
    high = high_entropy_mask(rollout.entropy, rollout.mask, "mean", "group", G)
    credit = rollout.advantages.abs()
    total = credit[rollout.mask].sum().item()
    found = quadrant_masks(rollout.advantages, high, rollout.mask)
    theirs = references.expected_quadrant_shares(
        ragged(rollout.advantages, rollout.mask), ragged(rollout.entropy, rollout.mask), G
    )
    assert {name: credit[where].sum().item() / total for name, where in found.items()} == pytest.approx(
        theirs, abs=1e-6
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40))
def test_both_informations_agree(pairs):
    bins, labels = (list(column) for column in zip(*pairs))
    ours = mutual_information(torch.tensor(bins), torch.tensor(labels)).item()
    assert ours == pytest.approx(references.expected_mutual_information(bins, labels), abs=1e-9)
