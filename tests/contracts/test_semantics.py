"""Decisions that hold for the whole of a step, where an earlier implementation of the SEPA paper decided silently."""

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.sepa import SEPA
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.operator import CreditOperator
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.verification.verifiers import Verdict
from tests.conftest import make_rollout


class Nothing(CreditOperator, reads="advantages", writes="advantages"):
    """Take all credit away."""

    def assign(self, rollout):
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}


def test_step_without_any_credit_is_a_step_with_a_row_of_metrics(fit):
    history = fit(steps=2, stack=[GRPO(), Nothing()]).history
    assert [step["train/loss"] for step in history] == [0.0, 0.0]
    assert all("train/solve_rate" in step and "train/entropy" in step for step in history)


def test_empty_sequence_is_a_row_like_others_and_what_could_not_be_judged_is_counted(fit, task, monkeypatch):
    rollout = make_rollout()
    rollout.mask[3] = False
    for operator in (
        GRPO(),
        StrategicGrams(),
        ConstantLambda(),
        SEPA(),
        GTPO(),
        Delight(),
        EntropyMask(scope="sequence"),
    ):
        operator.assign_checked(rollout)
    assert not rollout.advantages[3].any()
    monkeypatch.setattr(task, "judge", lambda texts, _: [Verdict.UNJUDGED] * len(texts))
    assert fit(steps=1, task=task).history[0]["train/unjudged"] == 1


@pytest.fixture(scope="module")
def sampled(policy, task):
    """Completions of the embedded policy, at most 40 tokens long."""
    examples = task.held_out_set[:4]
    prompt_ids = policy.encode_questions([example.question for example in examples])
    samples = InProcessEngine().sample(policy, prompt_ids, range(4), Sampling(8, max_tokens=40), seed=0, step=0)
    return prompt_ids.repeat_interleave(8, 0), samples


def test_end_of_sequence_is_a_sampled_token_with_credit_of_its_own(policy, sampled):
    _, samples = sampled
    last = samples.completion_ids.gather(1, samples.mask.sum(-1, keepdim=True) - 1).squeeze(-1)
    assert torch.equal(torch.isin(last, policy.stop_ids), ~samples.truncated)


def test_special_tokens_have_no_text_and_never_plan(policy, sampled):
    _, samples = sampled
    for row, pieces in enumerate(policy.decode_pieces(samples.completion_ids, samples.mask)):
        if not samples.truncated[row]:
            assert pieces[-1] == ""
    rollout = make_rollout([0.0], group_size=1, width=3)
    rollout.tokens, rollout.mask = [["let me", " think", ""]], torch.ones(1, 3, dtype=torch.bool)
    StrategicGrams().assign(rollout)
    assert rollout.plan_mask.tolist() == [[True, True, False]]


def test_truncated_completions_are_trained_on_and_counted(fit):
    assert fit(steps=1, max_tokens=4).history[0]["train/truncated"] == 1


def test_recorded_logprob_is_that_of_the_policy_that_is_optimised(policy, sampled):
    prompt_ids, samples = sampled
    with torch.no_grad(), policy.evaluation_mode():
        scores = policy.score_prompts(prompt_ids, samples.completion_ids, temperature=0.7)
    assert (scores.logprobs - samples.logprobs)[samples.mask].abs().max() < 1e-4


def test_entropy_and_surprisal_are_of_one_distribution(policy, sampled):
    prompt_ids, samples = sampled
    with torch.no_grad(), policy.evaluation_mode():
        scores = policy.score_prompts(prompt_ids, samples.completion_ids, temperature=0.7)
    assert_close(samples.entropy[samples.mask], scores.entropy[samples.mask], atol=1e-4, rtol=1e-3)


class Order(Callback):
    """Write down when credit is assigned."""

    def __init__(self, seen):
        self.seen = seen

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.seen.append(("sampled", batch.step))

    def on_before_backward(self, trainer, pl_module, loss):
        self.seen.append(("trained", trainer.global_step))


def test_reading_order_is_sample_then_credit_then_train(fit):
    seen = []
    fit(steps=2, stack=[GRPO(), Order(seen)])
    assert seen == [("sampled", 0), ("trained", 0), ("sampled", 1), ("trained", 1)]
