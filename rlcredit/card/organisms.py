"""Where a card measures: configurations of a policy and its task, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcredit.inputs.found import found, shipped
from rlcredit.inputs.strict_yaml import shown

BASIS = "configs/tiny.yaml"
"""What every shipped organism is a variant of; alone it is the first of them."""

FIRST = "aligned"


@dataclass(frozen=True)
class Organism:
    """A policy and its task.

    Args:
        name: in tables.
        origin: how it was named.
        files: the configurations it is made of.

    """

    name: str
    origin: str
    files: Sequence[str]


def names() -> list[str]:
    """Return the names of the shipped organisms."""
    return [FIRST, *sorted(file.stem for file in (shipped() / "organisms").glob("*.yaml"))]


def organism(named: str) -> Organism:
    """Return the organism that a name on the command line stands for.

    Args:
        named: a shipped one, or a file with a whole configuration.

    Raises:
        ValueError: there is none; with those that there are.

    """
    if named == FIRST:
        return Organism(named, named, (found(BASIS),))
    if named in names():
        return Organism(named, named, (found(BASIS), found(f"configs/organisms/{named}.yaml")))
    file = Path(found(named))
    if named.endswith((".yaml", ".yml")) and file.is_file():
        return Organism(file.stem, named, (str(file),))
    raise ValueError(f"--organism: there is no {shown(named)}. There are {', '.join(names())}, or name a .yaml file.")
