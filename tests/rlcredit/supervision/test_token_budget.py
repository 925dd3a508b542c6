"""Runs that end after so many tokens."""

import json
import math
from functools import partial
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.optim.lr_scheduler import LinearLR

from callbacks.episode.grpo import GRPO
from rlcredit.supervision.token_budget import TokenBudget
from tests.small_runs import finish_small_run, read_recorded_steps


class Evaluations(Callback):
    """Keep the steps after which held-out questions were asked."""

    def __init__(self):
        self.steps = []

    def on_validation_end(self, trainer, pl_module):
        self.steps.append(trainer.global_step)


def decoded(run):
    return [step["tokens/decoded"] for step in run.history]


def first_at(counts, share):
    """Return the number of the first step whose count is at or over a share."""
    return next(step for step, count in enumerate(counts, start=1) if count >= share)


def test_a_run_ends_with_the_first_step_at_or_over_its_budget(fit):
    plain = decoded(fit(steps=6))
    exactly, over = int(plain[2]), int(plain[2]) + 1
    assert decoded(fit(steps=-1, max_epochs=-1, stack=[GRPO(), TokenBudget(exactly)])) == plain[:3]
    assert decoded(fit(steps=-1, max_epochs=-1, stack=[GRPO(), TokenBudget(over)])) == plain[:4]
    limited = fit(steps=2, stack=[GRPO(), TokenBudget(over)])
    assert decoded(limited) == plain[:2], "a limit of steps still holds"


def test_tokens_of_updates_are_a_budget_too(fit):
    learnt = [step["tokens/backward"] for step in fit(steps=4).history]
    run = fit(steps=-1, max_epochs=-1, stack=[GRPO(), TokenBudget(backward_tokens=int(learnt[1]) + 1)])
    assert len(run.history) == first_at(learnt, learnt[1] + 1) == 3


def test_tokens_that_are_decoded_and_read_are_a_budget_too(fit):
    used = [step["tokens/decoded"] + step["tokens/prefill"] for step in fit(steps=4).history]
    run = fit(steps=-1, max_epochs=-1, stack=[GRPO(), TokenBudget(rollout_tokens=int(used[1]) + 1)])
    assert len(run.history) == 3


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.25, 0.5, 0.75, 1), (0.25, 0.5, 1)])
def test_evaluations_lie_at_equal_shares_of_the_budget_or_at_given_marks(fit, shares):
    plain, seen = decoded(fit(steps=8)), Evaluations()
    budget = int(plain[7])
    marks = 4 if len(shares) == 4 else [math.ceil(share * budget) for share in shares]
    stack = [GRPO(), TokenBudget(budget, evaluations=marks), seen]
    fit(steps=-1, max_epochs=-1, stack=stack, limit_val_batches=1, num_sanity_val_steps=0, val_check_interval=1)
    assert seen.steps == [first_at(plain, budget * share) for share in shares]


def test_a_rollout_of_several_updates_is_finished(fit):
    plain = fit(steps=4, updates_per_rollout=2)
    budget = int(plain.history[0]["tokens/decoded"])
    assert len(fit(steps=-1, max_epochs=-1, stack=[GRPO(), TokenBudget(budget)], updates_per_rollout=2).history) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Checkpoint directory", "ignore:You.re resuming")
def test_a_continued_run_ends_where_it_would_have_ended_and_a_finished_one_stays_as_it_is(fit, tmp_path):
    plain, whole = decoded(fit(steps=6)), Evaluations()
    asked = {"limit_val_batches": 1, "num_sanity_val_steps": 0, "val_check_interval": 1, "enable_checkpointing": True}

    def stack(*more):
        saving = ModelCheckpoint(tmp_path / "saved", "{step}", every_n_train_steps=1, save_top_k=-1)
        return [GRPO(), TokenBudget(int(plain[5]), evaluations=3), saving, *more]

    uninterrupted = fit(steps=-1, max_epochs=-1, stack=stack(whole), **asked)
    rest, path = Evaluations(), tmp_path / "saved" / "step=3.ckpt"
    continued = fit(steps=-1, max_epochs=-1, ckpt_path=path, stack=stack(rest), **asked)
    assert decoded(continued) == plain[3:]
    assert rest.steps == [step for step in whole.steps if step > 3]
    assert all(torch.equal(continued.adapter[name], value) for name, value in uninterrupted.adapter.items())
    again = fit(steps=-1, max_epochs=-1, ckpt_path=tmp_path / "saved" / "step=6.ckpt", stack=stack(), **asked)
    assert again.history == []
    assert all(torch.equal(again.adapter[name], value) for name, value in uninterrupted.adapter.items())


def test_a_schedule_that_counts_steps_is_refused_with_the_repair(fit):
    with pytest.raises(ValueError, match=r"Set model.scheduler: null"):
        fit(stack=[GRPO(), TokenBudget(100)], scheduler=partial(LinearLR, total_iters=5))


def test_a_checkpoint_without_counts_is_refused(fit):
    with pytest.raises(ValueError, match="does not say how many tokens"):
        fit(stack=[GRPO(), Forgetful(), TokenBudget(100)])


class Forgetful(Callback):
    """Forget the counts, as a checkpoint of an earlier version has."""

    def on_train_start(self, trainer, pl_module: Any):
        pl_module.state.token_counts = None


@pytest.mark.parametrize("arguments", [{}, {"decoded_tokens": 0}, {"decoded_tokens": 1, "backward_tokens": 1}])
def test_a_budget_is_one_number_of_tokens(arguments):
    with pytest.raises(ValueError, match="one of them and at least 1"):
        TokenBudget(**arguments)


def test_marks_ascend_to_the_budget_and_shares_are_at_least_one():
    assert TokenBudget(1000, evaluations=3).marks == [334, 667, 1000]
    with pytest.raises(ValueError, match="evaluations >= 1, got 0"):
        TokenBudget(100, evaluations=0)
    with pytest.raises(ValueError, match=r"ascend to its 100 tokens, got \[50, 25, 100\]"):
        TokenBudget(100, evaluations=[50, 25, 100])
    with pytest.raises(ValueError, match=r"ascend to its 100 tokens, got \[25, 50\]"):
        TokenBudget(100, evaluations=[25, 50])


@pytest.mark.slow
def test_a_configuration_ends_a_run_by_its_tokens_and_its_files_say_how_many(tmp_path):
    words = ("--trainer.max_steps=-1", "--trainer.logger=false")
    budget = "--trainer.callbacks+=TokenBudget(decoded_tokens=1200, evaluations=[300, 1200])"
    words = (*words, "--trainer.callbacks+=LinearRate(end=0.5)")
    status, _, err = finish_small_run(tmp_path, *words, budget)
    assert status == 0, err
    held_out = tmp_path / "runs" / "grpo-seed0" / "held_out"
    counted = [json.loads(path.read_text())["tokens"]["decoded"] for path in sorted(held_out.iterdir())]
    assert len(counted) == 3
    assert counted[0] == 0 < 300 <= counted[1] < 1200 <= counted[2]
    steps = read_recorded_steps(tmp_path)
    assert json.loads((held_out / f"step_{len(steps):06d}.json").read_text())["step"] == len(steps)
    status, _, err = finish_small_run(tmp_path, *words, budget, "--ckpt_path=last")
    assert (status, read_recorded_steps(tmp_path)) == (0, steps), err
