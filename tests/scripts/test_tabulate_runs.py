import sys

import pytest
import tabulate_runs
from mlflow import MlflowClient


@pytest.fixture
def database(tmp_path):
    """Two seeds of one condition, one of them run twice, and a run that failed."""
    path = tmp_path / "mlflow.db"
    client = MlflowClient(f"sqlite:///{path}")
    experiment = client.create_experiment("tiny", artifact_location=str(tmp_path))
    for condition, seed, solved, status in [
        ("grpo", "0", 0.2, "FINISHED"),
        ("grpo", "0", 0.5, "FINISHED"),
        ("grpo", "1", 0.7, "FINISHED"),
        ("eapo", "0", 0.9, "FAILED"),
    ]:
        run = client.create_run(experiment, tags={"condition": condition, "seed": seed}).info.run_id
        client.log_metric(run, "val/pass_at_1", solved)
        client.log_metric(run, "val/completion_length", 40)
        for step in range(12):
            client.log_metric(run, "train/entropy", 9.0 if step < 2 else 0.1, step=step)
        client.set_terminated(run, status)
    return path


def test_the_last_finished_run_of_each_seed_counts_and_the_interval_is_students(database, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tabulate_runs.py", str(database)])
    tabulate_runs.main()
    # Mean 0.6, standard error 0.1, t(0.975, 1) = 12.706.
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["| `grpo` | 0.600 ± 1.271 | 0.500, 0.700 | 40.0 | 0.1000 |"]


def test_one_seed_has_no_interval():
    assert tabulate_runs.interval([0.3]) == float("inf")
    assert tabulate_runs.interval([0.9, 0.95, 1.0]) == pytest.approx(0.1242, abs=5e-5)
