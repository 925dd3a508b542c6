"""Every validation writes its verdicts, and their mean is what was logged."""

import json

import numpy as np
import pytest
from lightning.pytorch import seed_everything

from rlcredit.tracking.held_out import HeldOutVerdicts
from rlcredit.tracking.status import RunStatus


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
