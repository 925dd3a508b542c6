"""MLflow's client, which neither waits as long as a server tells it to nor writes into the terminal."""

import logging
import os
from typing import Any

LIMITS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",  # it is obeyed to the second, and a second may be an hour
}
"""A tracker that does not answer is tried again by the delivery of the record, which has more patience."""


def connect_to_mlflow(address: str) -> Any:
    """Return a client of the tracker at an address; nothing is asked yet."""
    for name, value in LIMITS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient  # noqa: PLC0415

    # Once it is imported: it sets its own level. What it logs are tracebacks of errors that it raises as well.
    logging.getLogger("mlflow").setLevel(logging.CRITICAL)
    return MlflowClient(address)
