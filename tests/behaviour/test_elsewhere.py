"""Runs whose checkpoints, or whose address, are not where they usually are."""

from pathlib import Path

import pytest

from tests.small_runs import finish_small_run, read_recorded_steps


@pytest.mark.slow
def test_checkpoints_may_lie_elsewhere_and_the_run_goes_on_from_there(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=2", "--checkpoint.dirpath=kept")
    assert status == 0, err
    assert not (tmp_path / "runs" / "grpo-seed0" / "checkpoints").exists()
    status, _, err = finish_small_run(
        tmp_path, "--trainer.max_steps=4", "--checkpoint.dirpath=kept", "--ckpt_path=last"
    )
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert (tmp_path / "kept" / "last.ckpt").is_file()


LOGGERS = """
trainer:
  logger:
    - class_path: lightning.pytorch.loggers.MLFlowLogger
      init_args: {experiment_name: tiny, tracking_uri: null}
    - class_path: lightning.pytorch.loggers.CSVLogger
      init_args: {save_dir: csv}
"""


@pytest.mark.slow
def test_an_address_from_the_environment_stands_beside_other_loggers(tmp_path, mlflow_database):
    (tmp_path / "loggers.yaml").write_text(LOGGERS)
    address = f"sqlite:///{mlflow_database}"
    status, _, err = finish_small_run(
        tmp_path, "--config=loggers.yaml", "--trainer.max_steps=2", "--condition=both", MLFLOW_TRACKING_URI=address
    )
    assert status == 0, err
    assert _steps(address) == [0, 1]
    (metrics,) = Path(tmp_path, "csv").rglob("metrics.csv")
    assert "train/loss" in metrics.read_text()
    written = [path for path in (tmp_path / "runs").rglob("*") if path.suffix in (".yaml", ".json", ".jsonl")]
    assert written
    assert all(address not in path.read_text() for path in written)


def _steps(address):
    from mlflow import MlflowClient

    client = MlflowClient(address)
    (found,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    return [each.step for each in client.get_metric_history(found.info.run_id, "train/loss")]
