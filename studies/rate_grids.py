"""Choice of learning rates for a comparison: a grid on seeds of its own, one rate beyond where an end is best.

Every arm has the rate with the largest mean area over all seeds of the grid, of equal ones the lower.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlcredit.base.files import write_atomically
from studies.critics.declare_rounds import Setting, choose_setting, name_condition, read_areas
from studies.numbers import STUDIES

Arms = Mapping[str, Sequence[str]]
"""Condition files by arm."""


def add_rate_files(files: Sequence[str], factor: float) -> list[str]:
    """Return the files of an arm with a rate that falls from so many times the usual one.

    Example:
        >>> add_rate_files(["flat.yaml"], 0.5)
        ['flat.yaml', 'configs/rates/falling.yaml', 'configs/rates/x05.yaml']

    """
    rate = f"x{factor:g}".replace(".", "")
    return [*files, "configs/rates/falling.yaml", f"configs/rates/{rate}.yaml"]


def list_rate_conditions(arms: Arms, rates: Sequence[float]) -> dict[str, list[str]]:
    """Return the conditions of a grid, by names from which the arm and the rate can be read."""
    return {
        name_condition(arm, Setting(0, rate)): add_rate_files(files, rate)
        for arm, files in arms.items()
        for rate in rates
    }


def find_factors_beyond(factors: Collection[float], best: float) -> list[float]:
    """Return the rate beyond the best one where that is the lowest or the highest.

    Example:
        >>> [find_factors_beyond((2, 4, 8), best) for best in (2, 4, 8)]
        [[1.0], [], [16.0]]

    """
    return [best / 2] * (best == min(factors)) + [best * 2.0] * (best == max(factors))


def list_further_conditions(arms: Arms, rates: Sequence[float], campaign: str) -> dict[str, list[str]]:
    """Return the conditions one rate beyond those whose best was at an end of a grid."""
    conditions = {}
    for arm, best in choose_factors([campaign]).items():
        conditions |= list_rate_conditions({arm: arms[arm]}, find_factors_beyond(rates, best))
    return conditions


def choose_factors(campaigns: Sequence[str]) -> dict[str, float]:
    """Return the rate of every arm by the results of those of some campaigns of rates that are declared."""
    declared = [campaign for campaign in campaigns if any(STUDIES.glob(f"*/campaigns/{campaign}.yaml"))]
    return {arm: choose_setting(settings).factor for arm, settings in read_areas(declared).items()}


def write_declaration(script: str, plan: Mapping[str, Any], title: str) -> None:
    """Write a declaration with its command into the folder of campaigns beside a script.

    Args:
        script: Path of the script that declares it, ``__file__``.
        plan: Declaration.
        title: Sentence in its first line.

    """
    writer = Path(script).resolve().relative_to(STUDIES.parent)
    path = STUDIES.parent / writer.parent / "campaigns" / f"{plan['name']}.yaml"
    head = f"# {title}  rlcredit campaign {path.relative_to(STUDIES.parent)}\n# Written by {writer}.\n"
    write_atomically(path, head + yaml.safe_dump(dict(plan), sort_keys=False, width=160))
