"""The schemas of a campaign's ledger and of held-out evaluation files, checked when they are read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlcredit.campaign.declaration import HELD_OUT_METRICS, CampaignDeclaration
from rlcredit.campaign.evaluation_marks import locate_evaluations
from rlcredit.config.json_shapes import TEXT_OR_NULL, Shape, find_shape_mismatch, read_stored_json
from rlcredit.config.passwords import refuse_passwords

COUNTED = ("decoded", "prefill", "forward", "backward")
"""Counts of tokens that reports read and show; those of probes are none of training."""

NUMBER_OR_NULL = (float, type(None))
CELL: Shape = {
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
LEDGER: Shape = {
    "declaration?": dict,
    "sha256?": str,
    "threads?": int,
    "configs?": {str: dict},
    "parameters?": {str: dict},
    "code?": {str: str},
    "mlflow_run?": TEXT_OR_NULL,
    "seeds_added?": [int],
    "cells": {str: CELL},
}
CONFIG: Shape = {
    "data": {"init_args": dict},
    "model": {"validation": dict, "pass_k": int},
    "trainer": {"logger": (dict, list, bool, type(None))},
}
LOGGERS: dict[bool, Shape] = {
    True: {"class_path": str, "init_args": {"experiment_name": str, "tracking_uri": TEXT_OR_NULL}},
    False: {"class_path": str},
}
"""Those of MLflow, and others."""
FINISHED: Shape = {
    "seconds": float,
    "metrics": {str: dict.fromkeys(HELD_OUT_METRICS, float)},
    "tokens?": {str: dict.fromkeys(COUNTED, int)},
    "held_out_sha256": {str: str},
    "differences": [str],
    "executed_sha256?": TEXT_OR_NULL,
    "versions": {"git_commit": str, str: str},
}
OUTCOME: Shape = {
    "step": int,
    "tokens?": dict.fromkeys(COUNTED, int),
    "metrics": {str: float},
    "numbers": [int],
    "questions_sha256": str,
    "right": [[int]],
}
RESTORE = "Restore it from a copy (MLflow keeps one with the campaign), or remove the folder; then all runs begin anew."
REMOVE = "Remove it; the run is then made anew."


def read_campaign_record(path: Path) -> dict[str, Any]:
    """Return the content of a ledger.

    Raises:
        ValueError: it is damaged, or holds a password; with the repair.

    """
    content = read_stored_json(path, LEDGER, RESTORE)
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
        raise ValueError(f"{path} is damaged: declaration: {error} {RESTORE}") from None
    configs = content.get("configs") or {}
    finished = {name: entry for name, entry in content["cells"].items() if entry.get("state") == "finished"}
    if problem := next(_find_faults(declaration, configs, finished), None):
        raise ValueError(f"{path} is damaged: {problem}. {RESTORE}")
    return declaration


def _find_faults(
    declaration: CampaignDeclaration, configs: Mapping[str, Any], finished: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with the configurations and the finished runs of a declared campaign."""
    yield from (f"configs has no {name}" for name in declaration.conditions if name not in configs)
    problems = [
        find_shape_mismatch(configs, {str: CONFIG}, "configs"),
        find_shape_mismatch(finished, {str: FINISHED}, "cells"),
    ]
    yield from filter(None, problems)
    for name, config in configs.items():
        yield from _find_logger_faults(name, config)
    yield from filter(None, (_find_evaluation_fault(name, entry, declaration) for name, entry in finished.items()))


def _list_loggers(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    loggers = config["trainer"]["logger"]
    return [one for one in (loggers if isinstance(loggers, list) else [loggers]) if isinstance(one, dict)]


def _is_mlflow_logger(logger: Mapping[str, Any]) -> bool:
    return str(logger.get("class_path")).endswith(".MLFlowLogger")


def _find_logger_faults(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the loggers of a configuration."""
    for logger in _list_loggers(config):
        shape = LOGGERS[_is_mlflow_logger(logger)]
        yield from filter(None, [find_shape_mismatch(logger, shape, f"configs.{name}.trainer.logger")])


def _find_evaluation_fault(name: str, entry: Mapping[str, Any], declaration: CampaignDeclaration) -> str | None:
    """Return which evaluations a finished run lacks."""
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
    outcome = read_stored_json(path, OUTCOME, REMOVE)
    rows, width = outcome["right"], {len(row) for row in outcome["right"]}
    rectangular = len(rows) == len(outcome["numbers"]) > 0 and len(width) == 1 and 0 not in width
    if not rectangular or not all(verdict in (0, 1) for row in rows for verdict in row):
        raise ValueError(f"{path} is damaged: `right` has not one row of verdicts for each of `numbers`. {REMOVE}")
    return outcome


def find_mlflow_settings(config: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the experiment and address of a configuration's MLflow logger, None if it has none."""
    for logger in filter(_is_mlflow_logger, _list_loggers(config)):
        return {name: logger["init_args"][name] for name in ("experiment_name", "tracking_uri")}
    return None
