"""What an engine elsewhere cannot tell, the policy says; an engine with another policy is refused."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy
from rlcredit.training.scored_samples import EXACT_TOLERANCE, ROUNDED_TOLERANCE, choose_tolerance, sample_with_scores

SAMPLING = Sampling(completions=3, max_tokens=24)


class Elsewhere(Engine):
    """Draw as the embedded engine does, and say log-probabilities that are off by some nats."""

    def __init__(self, off):
        self.off = off

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        drawn = InProcessEngine().sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step)
        return replace(drawn, logprobs=drawn.logprobs + self.off, entropy=None, sum_pi_squared=None)


def draw(engine, policy):
    prompt_ids = policy.encode_questions(["2 + 3 =", "what is 11 - 4 + 2?"])
    return sample_with_scores(engine, policy, prompt_ids, [0, 7], SAMPLING, seed=3, step=0)


def test_samples_of_any_engine_have_the_scores_of_the_policy(policy):
    own, other = draw(InProcessEngine(), policy), draw(Elsewhere(0.001), policy)
    assert torch.equal(own.completion_ids, other.completion_ids)
    assert own.engine_logprobs is None
    for name in ("logprobs", "entropy", "sum_pi_squared"):
        found = getattr(other, name)
        assert_close(found, getattr(own, name).where(own.mask, 0), atol=1e-4, rtol=1e-4)
        assert not found[~other.mask].any()
    assert_close(other.engine_logprobs - own.logprobs.where(own.mask, 0), 0.001 * own.mask, atol=1e-5, rtol=0)


def test_an_engine_that_draws_from_another_policy_is_refused(policy):
    with pytest.raises(PolicyMismatch, match=r"--engine: Elsewhere is 0\.1 nats away .* tiny .*, and 0\.01 is allowed"):
        draw(Elsewhere(0.1), policy)


def test_fewer_bits_are_tolerated_more():
    assert choose_tolerance(Policy()) == EXACT_TOLERANCE
    assert (
        choose_tolerance(Policy(dtype="bfloat16")) == choose_tolerance(Policy(quantization="4bit")) == ROUNDED_TOLERANCE
    )
