"""Where a card measures: configurations of a policy and its task, by name."""

from pathlib import Path

from rlcredit.inputs.found import found, shipped
from rlcredit.inputs.strict_yaml import shown

BASIS = "configs/tiny.yaml"
"""What every shipped organism is a variant of; alone it is the first of them."""

FIRST = "aligned"


def names() -> list[str]:
    """Return the names of the shipped organisms."""
    return [FIRST, *sorted(file.stem for file in (shipped() / "organisms").glob("*.yaml"))]


def organism(named: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of an organism and the configurations it is made of.

    Args:
        named: a shipped one, or a file with a whole configuration.

    Raises:
        ValueError: there is none; with those that there are.

    """
    if named == FIRST:
        return named, (found(BASIS),)
    if named in names():
        return named, (found(BASIS), found(f"configs/organisms/{named}.yaml"))
    file = Path(found(named))
    if named.endswith((".yaml", ".yml")) and file.is_file():
        return file.stem, (str(file),)
    raise ValueError(f"--organism: there is no {shown(named)}. There are {', '.join(names())}, or name a .yaml file.")
