"""Where a card measures: configurations of a policy and its task, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcredit.command_line.suggestions import closest
from rlcredit.inputs import strict_yaml
from rlcredit.inputs.found import found, shipped
from rlcredit.inputs.names import folder_name
from rlcredit.inputs.strict_yaml import shown

BASIS = "tiny.yaml"
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
        return Organism(named, named, (str(shipped() / BASIS),))
    if named in names():
        return Organism(named, named, (str(shipped() / BASIS), str(shipped() / "organisms" / f"{named}.yaml")))
    file = Path(found(named))
    if named.endswith((".yaml", ".yml")) and file.is_file():
        if file.stem in (*names(), "arms"):
            raise ValueError(f"--organism: {shown(named)}: say {file.stem}, or rename the file: that name is taken.")
        content = strict_yaml.read(file)
        if not isinstance(content, dict) or not isinstance(content.get("trainer") or {}, dict):
            raise ValueError(
                f"--organism: {shown(named)} is no configuration: model, data and trainer, each a mapping."
            )
        return Organism(folder_name("--organism", file.stem), named, (str(file),))
    meant = closest(named, names())
    raise ValueError(
        f"--organism: there is no {shown(named)}.{f' Did you mean {meant}?' if meant else ''} There are "
        f"{', '.join(names())}, or name a .yaml file with model, data and optimizer. Subjects stand before --organism."
    )


def organisms(named: Sequence[str]) -> list[Organism]:
    """Return those that some names stand for, ``all`` for all that are shipped, each once.

    Raises:
        ValueError: there is no such organism, or two of them share a name.

    """
    wanted = dict.fromkeys(each for name in named for each in (names() if name == "all" else [name]))
    by_name: dict[str, Organism] = {}
    for each in map(organism, wanted):
        if (first := by_name.setdefault(each.name, each)) != each:
            raise ValueError(f"--organism: {shown(first.origin)} and {shown(each.origin)} share a name. Rename one.")
    return list(by_name.values())
