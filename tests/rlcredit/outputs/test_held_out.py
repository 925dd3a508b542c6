"""Every validation writes its verdicts, and their mean is what was logged."""

import json

import numpy as np
import pytest
from lightning.pytorch import Callback, seed_everything

from callbacks.episode.grpo import GRPO
from rlcredit.outputs.held_out import FinalEvaluation, HeldOutVerdicts, _make_held_out_tags, render_held_out_table
from rlcredit.outputs.run_status import RunStatus


@pytest.fixture
def evaluated(fit, tmp_path):
    seed_everything(0, verbose=False)
    watchers = {"limit_val_batches": 1.0, "val_check_interval": 1, "check_val_every_n_epoch": None}
    from callbacks.episode.grpo import GRPO

    fit(steps=2, completions=4, stack=[GRPO(), HeldOutVerdicts(), RunStatus()], num_sanity_val_steps=0, **watchers)
    return tmp_path


def test_the_mean_of_the_verdicts_is_pass_at_1_exactly(evaluated):
    for step in (1, 2):
        outcome = json.loads((evaluated / "held_out" / f"step_{step:06d}.json").read_text())
        assert outcome["step"] == step
        assert outcome["numbers"] == list(range(16))
        assert {len(row) for row in outcome["right"]} == {4}
        assert {verdict for row in outcome["right"] for verdict in row} <= {0, 1}
        assert np.float32(np.mean(outcome["right"])) == outcome["metrics"]["val/pass_at_1"]
        solved = [row for row in outcome["right"] if any(row)]
        assert np.float32(len(solved) / 16) == outcome["metrics"]["val/pass_at_k"]


def test_a_run_says_where_it_stands(evaluated):
    status = json.loads((evaluated / "status.json").read_text())
    assert (status["step"], status["steps"]) == (2, 2)
    assert 0 <= status["solve_rate"] <= 1
    assert 0 < status["step_seconds"] < 60
    assert 0 < status["validation_seconds"] < 60


LOGGED = {"val/pass_at_1": 0.5, "val/pass_at_k": 0.75, "val/math/pass_at_1": 0.25, "val/entropy": 1.0}


def test_every_held_out_set_is_a_column_and_the_rest_is_left_out():
    assert render_held_out_table([(0, {"val/pass_at_1": 0.25}), (4, LOGGED)]).splitlines() == [
        "| held out after | pass_at_1 | pass_at_k | math/pass_at_1 |",
        "|---|---|---|---|",
        "| 0 steps | 0.250 | | |",
        "| 4 steps | 0.500 | 0.750 | 0.250 |",
    ]


def test_tags_are_named_so_that_mlflow_shows_them_as_columns():
    assert _make_held_out_tags(LOGGED) == {
        "held_out.pass_at_1": "0.5000",
        "held_out.pass_at_k": "0.7500",
        "held_out.math.pass_at_1": "0.2500",
    }


class Evaluations(Callback):
    """Note after which steps held-out questions are asked."""

    def __init__(self):
        self.steps = []

    def on_validation_end(self, trainer, pl_module):
        self.steps.append(trainer.global_step)


@pytest.mark.parametrize(("steps", "every", "expected"), [(3, 2, [2, 3]), (2, 2, [2]), (2, 20, [2]), (3, 1, [1, 2, 3])])
def test_there_is_one_evaluation_after_the_last_step_whatever_the_interval(fit, steps, every, expected):
    evaluations = Evaluations()
    fit(
        steps=steps,
        stack=[GRPO(), FinalEvaluation(), evaluations],
        completions=2,
        max_tokens=8,
        limit_val_batches=1,
        num_sanity_val_steps=0,
        val_check_interval=every,
        check_val_every_n_epoch=None,
    )
    assert evaluations.steps == expected
