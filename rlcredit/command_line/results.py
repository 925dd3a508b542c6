"""Where the results of a run are, in a line or two."""

from rlcredit.record import MLflowDestination
from rlcredit.record.database import SQLITE
from rlcredit.run_folder.layout import RunFolder


def describe_run_results(folder: RunFolder, to: MLflowDestination | None) -> str:
    """Return where folder and adapter of a finished run are, and how its page in MLflow is opened.

    Args:
        folder: of the run.
        to: where its record was delivered; nowhere if None.

    Example:
        >>> print(describe_run_results(RunFolder("runs/grpo-seed0"), None))
        results are in runs/grpo-seed0, the adapter in runs/grpo-seed0/adapter

    """
    lines = [f"results are in {folder.path}, the adapter in {folder.adapter}"]
    if to is not None:
        local = to.tracking_uri is not None and to.tracking_uri.startswith(SQLITE)
        where = f"mlflow ui --backend-store-uri {to.tracking_uri}" if local else to.shown_address
        lines.append(f"in MLflow: run {to.run_name} of experiment {to.experiment_name}, {where}")
    return "\n".join(lines)
