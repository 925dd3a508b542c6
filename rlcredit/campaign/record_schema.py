"""The schemas of a campaign's ledger and of held-out evaluation files, checked when they are read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcredit.campaign.declaration import PRIMARY, CampaignDeclaration
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.json_shapes import Shape, find_shape_mismatch, read_stored_json
from rlcredit.config.passwords import refuse_passwords

NUMBER_OR_NULL = (float, type(None))
TEXT_OR_NULL = (str, type(None))

CELL: Shape = {
    "state?": str,
    "attempts?": int,
    "seconds?": float,
    "status?": int,
    "primary?": float,
    "metrics?": {str: {str: float}},
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
DECLARATION: Shape = {
    "name": str,
    "configs": [str],
    "conditions": {str: [str]},
    "baseline": str,
    "seeds": [int],
    "steps": int,
    "primary": str,
    "effect": float,
    "deviation?": NUMBER_OR_NULL,
    "exploratory?": bool,
    "settings?": dict,
    "families": {str: {"baseline": str, "conditions": [str]}},
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
    "metrics": {str: dict.fromkeys(PRIMARY, float)},
    "held_out_sha256": {str: str},
    "differences": [str],
    "executed_sha256?": TEXT_OR_NULL,
    "versions": {"git_commit": str, str: str},
}
OUTCOME: Shape = {
    "step": int,
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
    plain, configs = content["declaration"], content.get("configs")
    problem = find_shape_mismatch(plain, DECLARATION, "declaration") or _find_contradiction(plain, configs)
    finished = {name: entry for name, entry in content["cells"].items() if entry.get("state") == "finished"}
    problem = (
        problem
        or find_shape_mismatch(configs, {str: CONFIG}, "configs")
        or find_shape_mismatch(finished, {str: FINISHED}, "cells")
    )
    problem = problem or next(
        filter(None, (_find_logger_fault(name, config) for name, config in (configs or {}).items())), None
    )
    problem = problem or next(
        filter(None, (_find_evaluation_fault(name, entry, plain) for name, entry in finished.items())), None
    )
    if problem:
        raise ValueError(f"{path} is damaged: {problem}. {RESTORE}")
    return CampaignDeclaration.from_json(plain)


def _find_contradiction(plain: Mapping[str, Any], configs: Any) -> str | None:
    """Return how a declaration contradicts itself or the configurations beside it; None if it does not."""
    try:
        for name in (plain["name"], *plain["conditions"]):
            validate_folder_name("declaration", name)
    except ValueError as error:
        return str(error).rstrip(".")
    compared = [name for family in plain["families"].values() for name in (family["baseline"], *family["conditions"])]
    if unknown := [name for name in (plain["baseline"], *compared) if name not in plain["conditions"]]:
        return f"declaration.conditions has no {unknown[0]}"
    if plain["primary"] not in PRIMARY or not plain["seeds"] or plain["steps"] < 1 or not plain["effect"] > 0:
        return "declaration has an impossible primary, seeds, steps or effect"
    if missing := [name for name in plain["conditions"] if name not in (configs or {})]:
        return f"configs has no {missing[0]}"
    if unknown := set(plain) - set(DECLARATION) - {key.removesuffix("?") for key in DECLARATION}:
        return f"declaration.{sorted(unknown)[0]} is no key of a declaration"
    return None


def _find_logger_fault(name: str, config: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the loggers of a configuration."""
    loggers = config["trainer"]["logger"]
    for logger in loggers if isinstance(loggers, list) else [loggers]:
        if isinstance(logger, dict):
            shape = LOGGERS[str(logger.get("class_path")).endswith(".MLFlowLogger")]
            if problem := find_shape_mismatch(logger, shape, f"configs.{name}.trainer.logger"):
                return problem
    return None


def _find_evaluation_fault(name: str, entry: Mapping[str, Any], plain: Mapping[str, Any]) -> str | None:
    """Return which evaluations a finished run lacks."""
    steps = entry["metrics"]
    if odd := [step for step in steps if not (step.isascii() and step.isdigit() and len(step) < 12)]:
        return f"cells.{name}.metrics: {odd[0]!r} is no step"
    if str(plain["steps"]) not in steps or set(steps) != set(entry["held_out_sha256"]):
        return f"cells.{name} lacks step {plain['steps']}, or its metrics and held_out_sha256 have different steps"
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
    loggers = config["trainer"]["logger"]
    for logger in loggers if isinstance(loggers, list) else [loggers]:
        if isinstance(logger, dict) and logger["class_path"].endswith(".MLFlowLogger"):
            return {name: logger["init_args"][name] for name in ("experiment_name", "tracking_uri")}
    return None
