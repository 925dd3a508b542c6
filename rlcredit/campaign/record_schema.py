"""The schemas of a campaign's ledger and of held-out evaluation files, checked when they are read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlcredit.campaign.declaration import HELD_OUT_METRICS, CampaignDeclaration
from rlcredit.campaign.evaluation_marks import locate_evaluations
from rlcredit.config.json_shapes import TEXT_OR_NULL, Shape, find_shape_mismatch, read_stored_json
from rlcredit.config.passwords import refuse_passwords

TOKEN_KINDS = ("decoded", "prefill", "forward", "backward")
"""Counts of tokens that reports read and show; those of probes are none of training."""

NUMBER_OR_NULL = (float, type(None))
_RUN_SHAPE: Shape = {
    "state?": str,
    "attempts?": int,
    "seconds?": float,
    "status?": int,
    "primary?": float,
    "metrics?": {str: {str: float}},
    "tokens?": {str: {str: int}},
    "held_out_sha256?": {str: str},
    "differences?": [str],
    "versions?": {str: str},
}
_LEDGER_SHAPE: Shape = {
    "declaration?": dict,
    "sha256?": str,
    "threads?": int,
    "configs?": {str: dict},
    "parameters?": {str: dict},
    "code?": {str: str},
    "mlflow_run?": TEXT_OR_NULL,
    "seeds_added?": [int],
    "cells": {str: _RUN_SHAPE},
}
_CONFIG_SHAPE: Shape = {
    "data": {"init_args": dict},
    "model": {"validation": dict, "pass_k": int},
    "trainer": {"logger": (dict, list, bool, type(None))},
}
_LOGGER_SHAPES: dict[bool, Shape] = {
    True: {"class_path": str, "init_args": {"experiment_name": str, "tracking_uri": TEXT_OR_NULL}},
    False: {"class_path": str},
}
"""Those of MLflow, and others."""
_FINISHED_SHAPE: Shape = {
    "seconds": float,
    "metrics": {str: dict.fromkeys(HELD_OUT_METRICS, float)},
    "tokens?": {str: dict.fromkeys(TOKEN_KINDS, int)},
    "held_out_sha256": {str: str},
    "differences": [str],
    "executed_sha256?": TEXT_OR_NULL,
    "versions": {"git_commit": str, str: str},
}
_EVALUATION_SHAPE: Shape = {
    "step": int,
    "tokens?": dict.fromkeys(TOKEN_KINDS, int),
    "metrics": {str: float},
    "numbers": [int],
    "questions_sha256": str,
    "right": [[int]],
}
_RESTORE_ADVICE = (
    "Restore it from a copy (MLflow keeps one with the campaign), or remove the folder; then all runs begin anew."
)
_REMOVE_ADVICE = "Remove it; the run is then made anew."


def read_campaign_record(path: Path) -> dict[str, Any]:
    """Return the content of a ledger.

    Raises:
        ValueError: it is damaged, or holds a password; with the repair.

    """
    content = read_stored_json(path, _LEDGER_SHAPE, _RESTORE_ADVICE)
    refuse_passwords(content, str(path))
    return content


def restore_declaration(content: Mapping[str, Any], path: Path) -> CampaignDeclaration:
    """Return the declaration in a ledger, after checking everything that a report reads from it.

    Args:
        content: Content of the campaign's ledger.
        path: Path of the ledger, for messages.

    Raises:
        ValueError: it is damaged; with the repair.

    """
    try:
        declaration = CampaignDeclaration.from_json(content["declaration"])
    except ValueError as error:
        raise ValueError(f"{path} is damaged: declaration: {error} {_RESTORE_ADVICE}") from None
    configs = content.get("configs") or {}
    finished_runs = {name: entry for name, entry in content["cells"].items() if entry.get("state") == "finished"}
    if problem := next(_find_faults(declaration, configs, finished_runs), None):
        raise ValueError(f"{path} is damaged: {problem}. {_RESTORE_ADVICE}")
    return declaration


def _find_faults(
    declaration: CampaignDeclaration, configs: Mapping[str, Any], finished_runs: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the faults of the configurations and the finished runs of a declared campaign."""
    yield from (f"configs has no {name}" for name in declaration.conditions if name not in configs)
    problems = [
        find_shape_mismatch(configs, {str: _CONFIG_SHAPE}, "configs"),
        find_shape_mismatch(finished_runs, {str: _FINISHED_SHAPE}, "cells"),
    ]
    yield from filter(None, problems)
    for name, config in configs.items():
        yield from _find_logger_faults(name, config)
    yield from filter(None, (_find_evaluation_fault(name, entry, declaration) for name, entry in finished_runs.items()))


def _list_loggers(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    loggers = config["trainer"]["logger"]
    return [logger for logger in (loggers if isinstance(loggers, list) else [loggers]) if isinstance(logger, dict)]


def _is_mlflow_logger(logger: Mapping[str, Any]) -> bool:
    return str(logger.get("class_path")).endswith(".MLFlowLogger")


def _find_logger_faults(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of the loggers of a configuration."""
    for logger in _list_loggers(config):
        shape = _LOGGER_SHAPES[_is_mlflow_logger(logger)]
        yield from filter(None, [find_shape_mismatch(logger, shape, f"configs.{name}.trainer.logger")])


def _find_evaluation_fault(name: str, entry: Mapping[str, Any], declaration: CampaignDeclaration) -> str | None:
    """Return the fault of a finished run that lacks evaluations; None if it lacks none."""
    steps = entry["metrics"]
    if odd := [step for step in steps if not (step.isascii() and step.isdigit() and len(step) < 12)]:
        return f"cells.{name}.metrics: {odd[0]!r} is no step"
    counts = {int(step): entry.get("tokens", {}).get(step) for step in steps}
    if declaration.end not in locate_evaluations(counts, declaration.budget) or set(steps) != set(
        entry["held_out_sha256"]
    ):
        return f"cells.{name} lacks {declaration.end_label}, or its metrics and held_out_sha256 have different steps"
    return None


def read_evaluation_file(path: Path) -> dict[str, Any]:
    """Return a held-out evaluation.

    Raises:
        ValueError: the file is damaged; with the repair.

    """
    outcome = read_stored_json(path, _EVALUATION_SHAPE, _REMOVE_ADVICE)
    rows, width = outcome["right"], {len(row) for row in outcome["right"]}
    rectangular = len(rows) == len(outcome["numbers"]) > 0 and len(width) == 1 and 0 not in width
    if not rectangular or not all(verdict in (0, 1) for row in rows for verdict in row):
        raise ValueError(
            f"{path} is damaged: `right` has not one row of verdicts for each of `numbers`. {_REMOVE_ADVICE}"
        )
    return outcome


def find_mlflow_settings(config: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the experiment and address of a configuration's MLflow logger, None if it has none."""
    for logger in filter(_is_mlflow_logger, _list_loggers(config)):
        return {name: logger["init_args"][name] for name in ("experiment_name", "tracking_uri")}
    return None
