import copy
import math
from dataclasses import dataclass, field

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.implicit_reward import ImplicitReward
from tests.callbacks.rollouts import numbers
from tests.conftest import KnownLookahead, make_rollout
from tests.rlcredit.training.sampled_rollouts import TEMPERATURE, sample_rollout

ADVANTAGES = torch.tensor([[0.25, 0.25, 0.25], [-0.25, -0.25, 0.0], [0.0, 0.0, 0.0]])


@dataclass
class ToldRatios(KnownLookahead):
    """A policy whose log-ratios to the base model are told."""

    ratios: list = field(default_factory=list)

    def score_tokens(self, rollout, rows, states):
        return rollout.ref_logprobs[rows] + torch.tensor(self.ratios)[rows] + 0 * states.sum(-1)


def make_example():
    """Three completions of three, two and two tokens, the last one not judged."""
    rollout = make_rollout((1.0, 0.0, 0.0), group_size=3, width=3)
    rollout.mask = torch.tensor([[True, True, True], [True, True, False], [True, True, False]])
    rollout.judged = torch.tensor([True, True, False])
    rollout.lookahead = ToldRatios(ratios=[[2.0, 0.0, 4.0], [-2.0, 4.0, 9.0], [6.0, 6.0, 9.0]])
    rollout.advantages = ADVANTAGES
    return rollout


def test_the_worked_example():
    rollout = make_example()
    metrics = numbers(ImplicitReward(beta=0.5, weight=2.0).assign(rollout))
    # Rewards 1, 0, 2 and -1, 2, of mean 1 and 0.5; each less the other's mean is 0.5, -0.5, 1.5 and -2, 1.
    returns = torch.tensor([[1.5, 1.0, 1.5], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert_close(rollout.advantages, ADVANTAGES + 2 * returns)
    assert metrics == pytest.approx(
        {
            "loss": (math.log1p(math.exp(-3)) + math.log1p(math.exp(1))) / 2,  # totals 3, right, and 1, wrong
            "foreseen": 0.5,
            "size": 2 * (1.5 + 1.0 + 1.5 + 1.0 + 1.0) / 7,
        }
    )


def test_without_weight_it_only_learns():
    rollout, operator = make_rollout(), ImplicitReward(weight=0.0)
    before = rollout.advantages.clone()
    operator.assign(rollout)
    assert torch.equal(rollout.advantages, before)
    assert operator.adapter["factors"][1].any()


def test_it_judges_a_rollout_before_it_learns_from_it():
    taught = ImplicitReward(rate=0.05)
    taught.assign(make_rollout(seed=1))
    added, learned = [], []
    for correct in (torch.tensor([1.0, 0, 0, 1, 0, 0, 0, 0]), torch.tensor([0.0, 1, 1, 0, 0, 1, 1, 0])):
        rollout, judging = make_rollout(tuple(correct.tolist()), seed=2), copy.deepcopy(taught)
        before = rollout.advantages
        judging.assign(rollout)
        added.append(rollout.advantages - before)
        learned.append(judging.adapter["factors"][1])
    assert_close(added[0], added[1], atol=1e-6, rtol=0)
    assert not torch.equal(*learned)


def test_it_takes_a_step_of_adamw_on_the_cross_entropy_of_outcomes():
    operator, rollout = ImplicitReward(beta=0.5, rate=0.05), make_rollout(seed=2)
    operator.assign(make_rollout(seed=1))
    rollout.judged = torch.arange(8) != 3
    adapter = copy.deepcopy(operator.adapter)
    weights = [torch.nn.Parameter(weight) for weight in adapter["factors"]]
    optimizer = torch.optim.AdamW(weights, lr=0.05, weight_decay=0.0)
    optimizer.load_state_dict(adapter["moments"])
    metrics = operator.assign(rollout)
    waves = torch.arange(1.0, 5.0)
    states = (torch.cat([torch.zeros(8, 1), rollout.completion_ids[:, :-1]], 1)[..., None] * waves).sin()
    logits = (states + states @ weights[0] @ weights[1]) @ (torch.arange(110)[:, None] * waves).sin().T
    logprobs = logits.log_softmax(-1).gather(-1, rollout.completion_ids[..., None])[..., 0]
    totals = 0.5 * ((logprobs - rollout.ref_logprobs) * rollout.mask).sum(-1)
    right = totals.sigmoid()
    losses = -(rollout.correct * right.log() + (1 - rollout.correct) * (1 - right).log())
    loss = losses[rollout.judged].mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    assert_close(metrics["loss"], loss.detach())
    for found, expected in zip(operator.adapter["factors"], weights, strict=True):
        assert_close(found, expected.detach())


def test_on_a_real_policy_it_starts_at_the_base_model_and_learns_the_outcomes(policy):
    operator, rollout = ImplicitReward(beta=0.5, rate=3e-3), sample_rollout(policy)
    with torch.no_grad(), policy.disable_adapter():
        scores = policy.score_prompts(rollout.prompt_ids, rollout.completion_ids, TEMPERATURE)
    rollout.ref_logprobs = scores.logprobs
    surprises = -scores.logprobs.where(rollout.mask, 0).sum(-1)  # what is certain cannot become more likely
    rollout.correct = (surprises > surprises.median()).float()
    seen = [numbers(operator.assign(rollout.copy_with_neutral_ledger())) for _ in range(40)]
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert seen[0]["size"] == pytest.approx(0, abs=1e-4)
    assert seen[-1]["loss"] < 0.5 * seen[0]["loss"]
    assert seen[-1]["foreseen"] > 0.8
    assert seen[-1]["size"] > 0.1


def test_without_any_verdict_it_learns_and_adds_nothing():
    operator, rollout = ImplicitReward(), make_rollout()
    operator.assign(make_rollout(seed=1))
    rollout.judged = torch.zeros(8, dtype=torch.bool)
    before, factors = rollout.advantages.clone(), copy.deepcopy(operator.adapter["factors"])
    assert operator.assign(rollout) == {}
    assert torch.equal(rollout.advantages, before)
    assert all(torch.equal(*pair) for pair in zip(operator.adapter["factors"], factors, strict=True))


@pytest.mark.parametrize("arguments", [{"beta": 0.0}, {"rate": 0.0}, {"weight": -1.0}])
def test_a_reward_that_cannot_be_learned_is_refused(arguments):
    with pytest.raises(ValueError, match="ImplicitReward expects"):
        ImplicitReward(**arguments)
