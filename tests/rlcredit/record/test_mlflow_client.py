"""A database of MLflow's: whole or not there."""

import multiprocessing
import os
import signal
import sqlite3
import time

from rlcredit.record import mlflow_client


def tables(path):
    with sqlite3.connect(path) as found:
        return {name for (name,) in found.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_database_is_made_once_and_other_addresses_need_nothing(tmp_path):
    path = tmp_path / "new" / "mlflow.db"
    mlflow_client.make_mlflow_database(f"sqlite:///{path}")
    assert {"runs", "metrics", "params", "alembic_version"} <= tables(path)
    before = path.stat().st_mtime_ns
    mlflow_client.make_mlflow_database(f"sqlite:///{path}")
    assert path.stat().st_mtime_ns == before
    mlflow_client.make_mlflow_database("http://127.0.0.1:1")
    mlflow_client.make_mlflow_database("sqlite:///:memory:")
    assert [each.name for each in path.parent.iterdir()] == ["mlflow.db"]


def test_a_kill_in_the_middle_leaves_no_half_of_it(tmp_path):
    path = tmp_path / "mlflow.db"
    process = multiprocessing.get_context("fork").Process(
        target=mlflow_client.make_mlflow_database, args=(f"sqlite:///{path}",)
    )
    process.start()
    while not [each for each in tmp_path.glob(".mlflow.db.*.part") if each.stat().st_size]:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not path.exists()
    mlflow_client.make_mlflow_database(f"sqlite:///{path}")
    assert "metrics" in tables(path)
