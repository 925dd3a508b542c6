"""Refusals of a tracker that are final: another attempt would not help without a change."""

from socket import gaierror
from typing import Any

from rlcredit.config.error_messages import find_root_cause

PASSING_STATUSES = (408, 409, 425, 429, 499)
"""Statuses of requests that may be accepted later."""

OTHER_EXPERIMENT = "another experiment (rlcredit deliver RUN --experiment NAME)"
"""Where a run may go instead."""

STATUS_REPAIRS = {
    401: "it requires a login: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
    403: f"it does not let this account write there: ask for permission, or deliver the run to {OTHER_EXPERIMENT}",
    404: "there is no MLflow at this address, or not a version that the run can use: check the address, or name "
    "another with --mlflow",
}

UNKNOWN_SERVER = (
    "the server there is not MLflow, or requires a login: check the address, MLFLOW_TRACKING_USERNAME "
    "and MLFLOW_TRACKING_PASSWORD, or name another tracker with --mlflow"
)
"""Of answers without a code of MLflow's, of which only those come to us that another attempt does not change."""

DELETED_EXPERIMENT = (
    "its experiment `{name}` has been deleted: restore it (mlflow experiments restore --experiment-id {id}), or "
    f"deliver the run to {OTHER_EXPERIMENT}"
)

OTHER_REFUSAL = f"it does not accept what the run has recorded: deliver the run to {OTHER_EXPERIMENT}"


TROUBLE_WORDS = {
    ConnectionRefusedError: "refused connection",
    ConnectionError: "lost connection",
    TimeoutError: "no answer in time",
    gaierror: "unknown host",
}
"""What keeps a tracker from answering, by the error at the bottom of those that MLflow raises."""


class TrackerRefusal(Exception):  # noqa: N818  (said by a tracker; not every refusal is a fault)
    """A tracker refuses a run for good; the message says why and what to do, and holds no address."""


def find_tracker_refusal(error: Exception) -> str | None:
    """Return why a tracker refuses for good, and the repair; None for an error that may pass.

    Args:
        error: Error raised by MLflow or by what it is made of.

    """
    from mlflow.exceptions import RestException  # noqa: PLC0415

    if isinstance(error, TrackerRefusal):
        return str(error)
    if isinstance(error, RestException) and not error.json.get("error_code"):
        return UNKNOWN_SERVER
    status, code = _find_http_status(error)
    is_race = code == "RESOURCE_ALREADY_EXISTS"  # another run has made the experiment in this moment
    if is_race or status is None or not 400 <= status < 500 or status in PASSING_STATUSES:
        return None
    return f"{STATUS_REPAIRS.get(status, OTHER_REFUSAL)} ({code})"


def describe_tracker_trouble(error: Exception) -> str:
    """Return the reason why a tracker has not taken something, in words that hold no address.

    Example:
        >>> describe_tracker_trouble(ConnectionRefusedError(111, "at user:password@host"))
        'refused connection'

    """
    root = find_root_cause(error)
    return next((words for kind, words in TROUBLE_WORDS.items() if isinstance(root, kind)), type(error).__name__)


def _find_http_status(error: Exception) -> tuple[int | None, Any]:
    """Return the HTTP status of an error, also of a database's, and what to call it."""
    from mlflow.exceptions import MlflowException  # noqa: PLC0415
    from requests import HTTPError  # noqa: PLC0415

    if isinstance(error, MlflowException):
        return error.get_http_status_code(), error.error_code
    if isinstance(error, HTTPError) and error.response is not None:
        return error.response.status_code, f"HTTP {error.response.status_code}"
    return None, None
