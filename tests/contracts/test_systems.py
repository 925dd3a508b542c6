"""Lists of operators that are a published method, held against its formula."""

import copy
import warnings

import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.signals.bucket_normalization import BucketNormalization, bucket_normalized
from callbacks.signals.entropy_progress import EntropyProgress, entropy_progress
from callbacks.signals.process_signal import ProcessSignal, process_signal
from callbacks.tokens.entropy_gate import EntropyGate, entropy_gate
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from rlcredit.credit.operator import CreditOperator
from rlcredit.formulas.masked import masked_mean
from rlcredit.policy.policy import Policy
from tests.conftest import make_rollout


def erpo(clock=(), zero_variance="off"):
    anchor = OutcomeAnchor(eta=0.2, zero_variance=zero_variance)
    return [GRPO(), ProcessSignal(), *clock, BucketNormalization(buckets=4), EntropyGate(), anchor]


def credit(stack, rollout):
    for operator in stack:
        operator.assign_checked(rollout)
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
    signal = process_signal(rollout.ref_log_ratio, rollout.mask, 0.1)
    normal = bucket_normalized(signal, rollout.progress, rollout.mask, 4, 4)
    expected = gate * base.advantages + 0.2 * gate * base.advantages.sign() * normal
    assert_close(credit(erpo(), rollout)[rollout.mask], expected[rollout.mask])


class Noted(CreditOperator, reads="advantages process"):
    def __init__(self):
        super().__init__()
        self.seen = []

    def assign(self, rollout):
        self.seen.append((rollout.advantages, rollout.process, rollout.mask))
        return {}


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        ("float32", "32-true"),
        ("bfloat16", "bf16-mixed"),
        pytest.param("float32", "bf16-mixed", marks=pytest.mark.slow),
        pytest.param("bfloat16", "32-true", marks=pytest.mark.slow),
    ],
)
def test_while_policy_and_reference_are_one_erpo_is_its_gate(fit, dtype, precision):
    """The first rollout comes from a fresh adapter: the decoder's rounding must not be taken for training."""
    above, below = Noted(), Noted()
    stack = [GRPO(), ProcessSignal(), BucketNormalization(), EntropyGate(), above, OutcomeAnchor(), below]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how bfloat16 is decoded
        fit(steps=2, prompts=4, max_tokens=96, lr=1e-2, stack=stack, policy=Policy(dtype=dtype), precision=precision)
    (gated, process, mask), (anchored, _, _) = above.seen[0], below.seen[0]
    assert gated[mask].any()
    assert not process[mask].any()
    assert torch.equal(anchored, gated)
    assert above.seen[1][1].any()  # after one update the process signal is there


def test_the_third_party_assembly_is_its_formula():
    rollout = make_rollout()
    base = copy.copy(rollout)
    GRPO(normalize_std=True).assign(base)
    gate = entropy_gate(rollout.entropy, rollout.mask, 1, 5.0)
    weights = gate / masked_mean(gate, rollout.mask, dim=-1, keepdim=True)
    signal = process_signal(rollout.ref_log_ratio, rollout.mask, 0.1)
    normal = bucket_normalized(signal, rollout.progress, rollout.mask, 4, 10)
    expected = weights * base.advantages + 0.2 * base.advantages.sign() * normal
    third = EntropyGate(normalize="mean", scope="sequence", process=False)
    stack = [GRPO(normalize_std=True), ProcessSignal(), BucketNormalization(), third, OutcomeAnchor()]
    assert_close(credit(stack, rollout)[rollout.mask], expected[rollout.mask])


def test_beta_cancels_where_the_signal_is_normalised():
    results = []
    for beta in (0.1, 2.0):
        rollout = make_rollout()
        results.append(credit([GRPO(), ProcessSignal(beta), BucketNormalization(), OutcomeAnchor()], rollout))
    assert_close(results[0], results[1], atol=1e-4, rtol=1e-3)
