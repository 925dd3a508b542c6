"""ERPO, EP-GRPO and EAPO: process signals, gates and anchors by numbers worked out by hand."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.base import StackError
from callbacks.episode.grpo import GRPO
from callbacks.signals.bucket_normalization import BucketNormalization, bucket_normalize
from callbacks.signals.entropy_progress import EntropyProgress, entropy_progress
from callbacks.signals.process_signal import ProcessSignal, process_signal
from callbacks.tokens.eapo import EAPO, eapo_advantages
from callbacks.tokens.entropy_gate import EntropyGate, entropy_gate
from callbacks.tokens.outcome_anchor import OutcomeAnchor, outcome_anchor
from rlcredit.rollout import positional_progress
from tests.conftest import make_rollout

SEEDS = st.integers(0, 10_000)
MASK = torch.tensor([[True, True, True], [True, True, False]])


def test_the_process_signal_is_a_scaled_log_ratio_and_nothing_under_padding():
    old, ref = torch.tensor([[-1.0, -0.5, -2.0], [-0.1, -3.0, 7.0]]), torch.full((2, 3), -1.0)
    assert_close(process_signal(old, ref, MASK, 0.1), torch.tensor([[0.0, 0.05, -0.1], [0.09, -0.2, 0.0]]))


def test_both_clocks_end_at_one():
    assert_close(positional_progress(MASK), torch.tensor([[1 / 3, 2 / 3, 1.0], [0.5, 1.0, 1.0]]))
    entropy = torch.tensor([[0.0, 3.0, 1.0], [0.0, 0.0, 9.0]])
    # The second completion has no entropy of its own: it falls back on position.
    assert_close(entropy_progress(entropy, MASK), torch.tensor([[1e-6, 0.75, 1.0], [0.5, 1.0, 1.0]]))


def test_buckets_compare_a_group_at_one_stage():
    process = torch.tensor([[1.0, 4.0, 0.0], [3.0, 8.0, 99.0]])
    progress = torch.tensor([[0.3, 0.5, 1.0], [0.5, 1.0, 1.0]])
    # Two buckets. First half: 1, 4, 3 with mean 8/3 and deviation sqrt(14)/3. Second half: 0 and 8.
    deviation = math.sqrt(14) / 3
    first = [(value - 8 / 3) / deviation for value in (1.0, 4.0, 3.0)]
    expected = torch.tensor([[first[0], first[1], -1.0], [first[2], 1.0, 0.0]])
    assert_close(bucket_normalize(process, progress, MASK, 2, 2), expected)


def test_a_bucket_of_one_token_or_of_equal_signals_is_silent_and_tenths_lie_where_they_should():
    progress = torch.arange(1, 11)[None] / 10
    mask = torch.ones(1, 10, dtype=torch.bool)
    assert not bucket_normalize(torch.rand(1, 10), progress, mask, 1, 10).any()
    assert not bucket_normalize(torch.full((1, 10), 0.3), progress, mask, 1, 1).any()


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 4))
def test_every_bucket_of_every_group_has_mean_zero_and_deviation_one_or_zero(seed, buckets):
    rollout = make_rollout(seed=seed, width=12)
    process = torch.randn(8, 12, generator=torch.Generator().manual_seed(seed))
    result = bucket_normalize(process, rollout.progress, rollout.mask, 4, buckets).double()
    bucket = (buckets * rollout.progress - 1e-6).ceil().clamp(1, buckets)
    for group in range(2):
        for number in range(1, buckets + 1):
            rows = slice(4 * group, 4 * group + 4)
            values = result[rows][rollout.mask[rows] & (bucket[rows] == number)]
            if len(values) > 1:
                assert values.mean().item() == pytest.approx(0, abs=1e-5)
                assert values.std(correction=0).item() == pytest.approx(1, abs=1e-4)


def test_the_gate_is_a_sigmoid_of_the_groups_standard_score():
    entropy = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 50.0]])  # five tokens: mean 2, deviation sqrt 2
    expected = torch.sigmoid(5.0 * (entropy - 2) / math.sqrt(2)).where(MASK, 0.5)
    assert_close(entropy_gate(entropy, MASK, 2, 5.0), expected)
    assert (entropy_gate(torch.full((2, 3), 0.3), MASK, 2, 5.0) == 0.5).all()


@pytest.mark.parametrize(("normalize", "mean"), [("none", 0.5), ("double", 1.0), ("mean", 1.0)])
def test_the_gate_can_keep_the_size_of_the_update(normalize, mean):
    rollout = make_rollout([1.0, 0.0], group_size=2, width=4)
    rollout.mask = torch.ones(2, 4, dtype=torch.bool)
    rollout.entropy = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(2, 4)
    rollout.advantages = torch.ones(2, 4)
    metrics = EntropyGate(gamma=2.0, normalize=normalize).assign(rollout)
    assert rollout.advantages.mean().item() == pytest.approx(mean)
    assert metrics["pivot_fraction"] == 0.5
    assert metrics["gate_mean"].item() == pytest.approx(0.5)


def test_the_anchor_has_the_sign_of_the_outcome():
    advantages, process = torch.tensor([[0.5], [-0.5], [-0.5]]), torch.tensor([[2.0], [2.0], [-2.0]])
    mask, rewards = torch.ones(3, 1, dtype=torch.bool), torch.tensor([1.0, 0.0, 0.0])
    anchored = outcome_anchor(advantages, process, mask, rewards, 0.2, "off")
    assert_close(anchored, torch.tensor([[0.9], [-0.9], [-0.1]]))  # pushed away already: the wrong answer is relieved


@pytest.mark.parametrize(("rewards", "sign"), [([1.0] * 4, 1.0), ([0.0] * 4, -1.0)])
def test_equal_rewards_are_silent_under_erpo_and_teach_under_ep_grpo(rewards, sign):
    process = torch.randn(4, 3)
    mask, zeros = torch.ones(4, 3, dtype=torch.bool), torch.zeros(4, 3)
    assert not outcome_anchor(zeros, process, mask, torch.tensor(rewards), 0.2, "off").any()
    assert_close(outcome_anchor(zeros, process, mask, torch.tensor(rewards), 0.2, "outcome"), 0.2 * sign * process)


def erpo(clock=(), zero_variance="off"):
    anchor = OutcomeAnchor(eta=0.2, zero_variance=zero_variance)
    return [GRPO(), ProcessSignal(), *clock, BucketNormalization(buckets=4), EntropyGate(), anchor]


def credit(stack, rollout):
    for operator in stack:
        operator.checked(rollout)
    return rollout.advantages


def test_erpo_by_the_entropy_clock_is_ep_grpo():
    one, two = make_rollout(), make_rollout()
    one.progress = entropy_progress(one.entropy, one.mask)
    assert_close(credit(erpo(zero_variance="outcome"), one), credit(erpo([EntropyProgress()], "outcome"), two))


def test_the_stack_is_the_formula():
    rollout = make_rollout()
    base = copy.copy(rollout)
    GRPO().assign(base)
    gate = entropy_gate(rollout.entropy, rollout.mask, 4, 5.0)
    signal = process_signal(rollout.old_logprobs, rollout.ref_logprobs, rollout.mask, 0.1)
    normal = bucket_normalize(signal, rollout.progress, rollout.mask, 4, 4)
    expected = gate * base.advantages + 0.2 * gate * base.advantages.sign() * normal
    assert_close(credit(erpo(), rollout)[rollout.mask], expected[rollout.mask])


def test_beta_cancels_where_the_signal_is_normalised():
    results = []
    for beta in (0.1, 2.0):
        rollout = make_rollout()
        results.append(credit([GRPO(), ProcessSignal(beta), BucketNormalization(), OutcomeAnchor()], rollout))
    assert_close(results[0], results[1], atol=1e-4, rtol=1e-3)


def test_without_the_reference_the_repair_is_named():
    rollout = make_rollout()
    rollout.ref_logprobs = None
    with pytest.raises(StackError, match=r"ProcessSignal reads \['ref_logprobs'\], which this rollout lacks"):
        ProcessSignal().checked(rollout)


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.floats(0.0, 1.0), st.floats(1.1, 4.0))
def test_eapo_is_a_weight_between_its_bounds(seed, alpha, phi):
    rollout = make_rollout(seed=seed)
    GRPO().assign(rollout)
    leaned = eapo_advantages(rollout.advantages, rollout.entropy, rollout.mask, 4, alpha, phi)
    weight = (leaned / rollout.advantages)[rollout.mask & (rollout.advantages != 0)]
    assert (weight >= 1 - alpha / phi - 1e-5).all()
    assert (weight <= 1 + alpha / phi + 1e-5).all()
    assert not leaned[rollout.advantages == 0].any()


def test_eapo_by_hand():
    entropy = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 50.0]])  # standard scores -1.41, -.71, 0, .71, 1.41
    advantages = torch.tensor([[1.0], [-3.0]]).expand(2, 3)
    # Clipped at 0.5 and at 1.5; the wrong answer's uncertain tokens are blamed more.
    score = math.sqrt(0.5)
    expected = torch.tensor([[1 - 0.1, 1 - 0.1, 1.0], [-3 - 0.2 * score, -3 - 0.2 * 2 * score, -3.0]])
    assert_close(eapo_advantages(advantages, entropy, MASK, 2, 0.2, 2.0), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProcessSignal(beta=-1.0), "beta >= 0"),
        (lambda: BucketNormalization(buckets=0), "buckets >= 1"),
        (lambda: EntropyGate(gamma=-1.0), "gamma >= 0"),
        (lambda: EntropyGate(normalize="sum"), "normalize to be one of none, double, mean, got 'sum'"),
        (lambda: OutcomeAnchor(eta=-0.1), "eta >= 0"),
        (lambda: EAPO(alpha=2.0, phi=2.0), "0 <= alpha < phi, got 2.0 and 2.0. Otherwise signs may flip"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
