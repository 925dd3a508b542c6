"""The report of ``rlcredit validate``: held-out results, without a step where there is no checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only

from rlcredit.outputs.held_out import render_held_out_value
from rlcredit.record import MLflowDestination
from rlcredit.record.publication import publish_results
from rlcredit.run_folder.layout import RunFolder

RECORD_FOLDER = "validation"
"""Where its record lies, in the folder of the run: the record of the run itself stays as it is."""


@rank_zero_only
def report_validation(
    metrics: Mapping[str, Any],
    parameters: Mapping[str, Any],
    step: int,
    folder: Path,
    destination: MLflowDestination | None,
) -> None:
    """Print the results of a validation, and record them as an MLflow run of their own.

    Args:
        metrics: Metrics that were logged; those of held-out questions are reported.
        parameters: Parameters of the configuration.
        step: Step after which the checkpoint was written; 0 without one.
        folder: Folder of the run.
        destination: Destination of the record; it is not delivered if None.

    """
    held_out = {name: float(value) for name, value in metrics.items() if name.startswith("val/")}
    moment = f" after {step} steps" if step else ""
    names = {name: name.removeprefix("val/").replace("_at_", "@") for name in held_out}
    summary = "   ".join(f"{names[name]} {render_held_out_value(name, held_out)}" for name in held_out)
    print(f"held out{moment}: {summary}")
    print("`rlcredit evaluate` keeps the answers, gives intervals, and compares policies question by question.")
    if destination is None:
        return
    destination.run_name, destination.tags = (
        f"{destination.run_name}-validate",
        {**destination.tags, "kind": "validation"},
    )
    place = RunFolder(folder / RECORD_FOLDER)
    with place.lock_folder():
        publish_results(place, destination, parameters, held_out, step=step)
