"""The state of a run on disk: whether it can continue, how far it has come, and its results once finished."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import file_sha256
from rlcredit.campaign.config_differences import hash_config, list_run_differences
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.record_schema import NUMBER_OR_NULL, read_evaluation_file
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.config import strict_yaml
from rlcredit.config.json_shapes import read_stored_json
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import RunFolder

STATUS = ("step?", "step_seconds?", "validation_seconds?", "solve_rate?", "held_out?")


def can_continue_run(spec: RunSpec, evaluations: Sequence[int]) -> bool:
    """Whether a run can continue from its newest intact checkpoint, with no part of its record missing.

    Args:
        spec: Run that has been interrupted.
        evaluations: Steps after which it is evaluated.

    """
    path, _ = find_newest_checkpoint(spec.run_folder.checkpoints)
    if path is None:
        return False
    try:
        checkpoint = read_checkpoint(path)
    except ValueError:
        return False
    step = checkpoint["global_step"]
    owed = [step] if checkpoint.get("evaluation_owed") else []
    return all(read_run_evaluation(spec, due) is not None for due in evaluations if due <= step and due not in owed)


def read_run_evaluation(spec: RunSpec, step: int) -> dict[str, Any] | None:
    """Return a held-out evaluation of a run, None if it has not been made."""
    path = spec.run_folder.evaluation_file(step)
    return read_evaluation_file(path) if path.is_file() else None


def read_run_status(spec: RunSpec) -> dict[str, Any]:
    """Return the status that a run has written; empty before it has written one."""
    path = spec.run_folder.status
    return read_stored_json(path, dict.fromkeys(STATUS, NUMBER_OR_NULL), "Remove it.") if path.is_file() else {}


def read_log_tail(folder: Path) -> list[str]:
    """Return the last three lines of the log in a run's folder."""
    return RunFolder(folder).log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]


def summarise_finished_run(
    spec: RunSpec, declaration: CampaignDeclaration, declared: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the summary of a finished run that the ledger stores.

    Args:
        spec: Run that has finished.
        declaration: Declaration of the campaign.
        declared: Resolved configuration that was declared for the run.
        parameters: Parameters that its objects should report.

    Returns:
        The primary metric of the last evaluation, all metrics by step, hashes of files and of the configuration,
        versions, and where the executed configuration is not the declared one.

    """
    steps = spec.run_folder.evaluated_steps()
    outcomes = {step: read_run_evaluation(spec, step) for step in steps}
    metrics = {str(step): evaluation["metrics"] for step, evaluation in outcomes.items() if evaluation}
    config = spec.run_folder.config
    return {
        "primary": metrics[str(declaration.steps)][declaration.primary],
        "metrics": metrics,
        "held_out_sha256": {str(step): file_sha256(spec.run_folder.evaluation_file(step)) for step in steps},
        "declared_sha256": hash_config(declared),
        "executed_sha256": hash_config(strict_yaml.read_yaml(config)) if config.is_file() else None,
        "differences": list_run_differences(spec.folder, declared, parameters),
        "versions": read_code_versions(),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
