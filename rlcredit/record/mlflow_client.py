"""A client of MLflow that neither waits nor writes, and its database, made atomically."""

import logging
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from rlcredit.base.files import sync_folder

TIME_LIMITS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",  # it is obeyed to the second, and a second may be an hour
}
"""A tracker that does not answer is tried again by the delivery of the record, which has more patience."""


def connect_to_mlflow(address: str) -> Any:
    """Return a client of the tracker at an address; nothing is asked yet."""
    for name, value in TIME_LIMITS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient  # noqa: PLC0415

    # Once it is imported: it sets its own level. What it logs are tracebacks of errors that it raises as well.
    logging.getLogger("mlflow").setLevel(logging.CRITICAL)
    return MlflowClient(address)


SQLITE_PREFIX = "sqlite:///"
DATABASE_PATIENCE = 60.0
"""Seconds to wait for another process that makes the same database."""


def make_mlflow_database(address: str) -> None:
    """Create the file of an SQLite database with all its tables, unless it exists; other addresses need nothing.

    Raises:
        TimeoutError: another process has been making it for too long.

    """
    path = Path(address.removeprefix(SQLITE_PREFIX))
    if not address.startswith(SQLITE_PREFIX) or not path.name or path.name.startswith(":") or path.exists():
        return
    lock = path.with_name(f".{path.name}.making")
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock, timeout=DATABASE_PATIENCE):
        if not path.exists():
            part_file = path.with_name(f".{path.name}.{os.getpid()}.part")
            part_file.unlink(missing_ok=True)
            _create_tables(f"{SQLITE_PREFIX}{part_file}")
            os.replace(part_file, path)
            sync_folder(path.parent)
        lock.unlink(missing_ok=True)


def _create_tables(address: str) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415

    SqlAlchemyStore(address, "./mlruns")._dispose_engine()
