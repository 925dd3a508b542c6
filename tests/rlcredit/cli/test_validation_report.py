"""``rlcredit validate`` says what it found, and MLflow has it."""

import os

import pytest
from mlflow import MlflowClient

from tests.forks import CommandFork
from tests.small_runs import SMALL, wait_for_small_run


@pytest.mark.slow
def test_validation_is_said_without_a_step_and_recorded(tmp_path, mlflow_database):
    command = ["-m", "rlcredit", "validate", *SMALL[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    status, out, err = wait_for_small_run(CommandFork(command, tmp_path, environment))
    assert status == 0, err
    assert "held out: pass@1 0." in out
    assert "pass@k" in out
    assert "rlcredit evaluate" in out
    assert "step" not in out
    client = MlflowClient(f"sqlite:///{mlflow_database}")
    (run,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    assert (run.info.run_name, run.info.status) == ("grpo-seed0-validate", "FINISHED")
    assert run.data.tags["kind"] == "validation"
    shown = out.partition("pass@1 ")[2].split()[0]
    assert f"{run.data.metrics['val/pass_at_1']:.3f}" == shown
    assert not any(name.startswith("step") for name in run.data.metrics)
    assert [path.name for path in (tmp_path / "runs" / "grpo-seed0").iterdir()] == ["validation"]
