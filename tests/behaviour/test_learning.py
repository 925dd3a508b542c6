"""Sanity checks: does learning happen when it should, and only then?"""

import json

import pytest
import torch

from callbacks.episode.grpo import GRPO
from rlcredit.credit.operator import CreditOperator
from rlcredit.tasks import Records


class WrongSign(CreditOperator, reads="advantages", writes="advantages"):
    """Punish what earned and reward what did not."""

    def assign(self, rollout):
        rollout.advantages = -rollout.advantages
        return {}


def one_prompt(folder):
    """A task of a single question."""
    question = "State the final answer to the following arithmetic problem: 7 - 9 + 4 - 8 ="
    for name, prompt in (("train", question), ("held_out", question.replace("8", "7"))):
        (folder / f"{name}.jsonl").write_text(json.dumps({"prompt": prompt, "answer": -6}))
    return Records(str(folder / "train.jsonl"), str(folder / "held_out.jsonl"), prompts_per_step=1)


def solve_rates(run):
    return [step["train/solve_rate"] for step in run.history]


@pytest.mark.slow
def test_one_prompt_can_be_overfitted(fit, tmp_path):
    rates = solve_rates(fit(steps=20, lr=2e-3, prompts=1, completions=32, task=one_prompt(tmp_path)))
    assert rates[0] < 0.5
    assert sum(rates[-3:]) / 3 > 0.9


@pytest.mark.slow
def test_wrong_sign_advantages_go_down(fit, tmp_path):
    settings = {"lr": 2e-3, "prompts": 1, "completions": 32, "task": one_prompt(tmp_path)}
    rates = solve_rates(fit(steps=8, stack=[GRPO(), WrongSign()], **settings))
    assert rates[0] > 0.2
    assert sum(rates[-3:]) / 3 < 0.1


@pytest.mark.slow
def test_a_learning_rate_of_zero_stays(fit):
    before, after = fit(steps=1, lr=0.0), fit(steps=4, lr=0.0)
    assert all(torch.equal(before.adapter[name], weight) for name, weight in after.adapter.items())
