"""The state of a run on disk: whether it can continue, how far it has come, and its results once finished."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.budget_kinds import sum_budget_counts
from rlcredit.base.files import file_sha256
from rlcredit.campaign.config_differences import hash_config, list_run_differences
from rlcredit.campaign.declaration import CampaignDeclaration, DeclaredBudget
from rlcredit.campaign.evaluation_marks import locate_evaluations
from rlcredit.campaign.record_schema import NUMBER_OR_NULL, read_evaluation_file
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.config import strict_yaml
from rlcredit.config.json_shapes import read_stored_json
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import RunFolder

_STATUS_KEYS = ("step?", "step_seconds?", "validation_seconds?", "solve_rate?", "held_out?")


def can_continue_run(spec: RunSpec, evaluations: Sequence[int], budget: DeclaredBudget | None = None) -> bool:
    """Whether a run can continue from its newest intact checkpoint, with no part of its record missing.

    Args:
        spec: Run that has been interrupted.
        evaluations: Steps after which it is evaluated, or tokens of the budget.
        budget: Budget of the campaign; None if it counts steps.

    """
    path, _ = find_newest_checkpoint(spec.run_folder.checkpoints)
    if path is None:
        return False
    try:
        checkpoint = read_checkpoint(path)
    except ValueError:
        return False
    step = checkpoint["global_step"]
    counts = checkpoint.get("token_counts") or {}
    if budget is not None and not counts:
        return False
    progress = step if budget is None else sum_budget_counts(budget.key, counts)
    evaluated_steps = locate_run_evaluations(spec, budget)
    due = [mark for mark in evaluations if mark <= progress]
    missing = [mark for mark in due if evaluated_steps.get(mark, step + 1) > step]
    if checkpoint.get("evaluation_owed"):  # of the last step, which may be the first at several marks of a budget
        return missing == due[len(due) - len(missing) :] and (budget is not None or len(missing) <= 1)
    return not missing


def locate_run_evaluations(spec: RunSpec, budget: DeclaredBudget | None) -> dict[int, int]:
    """Return the steps of the evaluations that a run has made, by step or by mark of the budget."""
    evaluations = {step: read_run_evaluation(spec, step) or {} for step in spec.run_folder.evaluated_steps()}
    return locate_evaluations({step: evaluation.get("tokens") for step, evaluation in evaluations.items()}, budget)


def read_run_evaluation(spec: RunSpec, step: int) -> dict[str, Any] | None:
    """Return a held-out evaluation of a run, None if it has not been made."""
    path = spec.run_folder.evaluation_file(step)
    return read_evaluation_file(path) if path.is_file() else None


def read_run_status(spec: RunSpec) -> dict[str, Any]:
    """Return the status that a run has written; empty before it has written one."""
    path = spec.run_folder.status
    return read_stored_json(path, dict.fromkeys(_STATUS_KEYS, NUMBER_OR_NULL), "Remove it.") if path.is_file() else {}


def read_log_tail(folder: Path) -> list[str]:
    """Return the last three lines of the log in a run's folder."""
    return RunFolder(folder).log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]


def summarise_finished_run(
    spec: RunSpec, declaration: CampaignDeclaration, declared_config: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the summary of a finished run that the ledger stores.

    Args:
        spec: Run that has finished.
        declaration: Declaration of the campaign.
        declared_config: Resolved configuration that was declared for the run.
        parameters: Parameters that its objects should report.

    Returns:
        The primary metric of the last evaluation, all metrics by step, hashes of files and of the configuration,
        versions, and where the executed configuration is not the declared one.

    """
    steps = spec.run_folder.evaluated_steps()
    last_step = locate_run_evaluations(spec, declaration.budget)[declaration.end]
    outcomes = {step: evaluation for step in steps if (evaluation := read_run_evaluation(spec, step))}
    metrics = {str(step): evaluation["metrics"] for step, evaluation in outcomes.items()}
    tokens = {str(step): evaluation["tokens"] for step, evaluation in outcomes.items() if "tokens" in evaluation}
    config = spec.run_folder.config
    return {
        "primary": metrics[str(last_step)][declaration.primary],
        "metrics": metrics,
        **({"tokens": tokens} if tokens else {}),
        "held_out_sha256": {str(step): file_sha256(spec.run_folder.evaluation_file(step)) for step in steps},
        "declared_sha256": hash_config(declared_config),
        "executed_sha256": hash_config(strict_yaml.read_yaml(config)) if config.is_file() else None,
        "differences": list_run_differences(spec.folder, declared_config, parameters),
        "versions": read_code_versions(),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
