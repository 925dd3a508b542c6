"""Compare what is installed with what pyproject.toml and tests/constraints.txt ask for.

python scripts/audit_versions.py            says what differs, with status 1 if a version is one that must not run
python scripts/audit_versions.py --write    writes tests/constraints.txt from what is installed

The floors of pyproject.toml leave out versions with known holes; the constraints are what the tests ran with.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "tests" / "constraints.txt"
KNOWN_BAD = {
    "lightning": "==2.6.2,==2.6.3",  # carried malware
    "pytorch-lightning": "==2.6.2,==2.6.3",
}
"""Versions that no floor leaves out where another package brings them, each alone."""

HEAD = """\
# What the tests ran with: pip install -e ".[dev]" -c tests/constraints.txt
# Written by scripts/audit_versions.py --write. Builds of one version (torch's +cpu, +cu130) are not told apart.
"""


def read_declared_requirements() -> Iterator[Requirement]:
    """Yield what pyproject.toml asks for, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in (
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ):
        yield Requirement(text)


def find_installed_version(name: str) -> str | None:
    """Return the public version of an installed package, None if it is not there."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


def find_forbidden_versions() -> Iterator[str]:
    """Yield a sentence for every installed version that pyproject.toml leaves out, or that is known to be bad."""
    for requirement in read_declared_requirements():
        found = find_installed_version(requirement.name)
        if found is not None and not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} is {found}, and pyproject.toml asks for {requirement.specifier}."
    for name, versions in KNOWN_BAD.items():
        if find_installed_version(name) in [each.removeprefix("==") for each in versions.split(",")]:
            yield f"{name} is {find_installed_version(name)}, which must not run. Remove it."


def collect_installed_versions() -> dict[str, str]:
    """Return the versions of what is installed and asked for, by pyproject.toml or by something that it asks for."""
    waiting, found = list(read_declared_requirements()), dict[str, str]()
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        known = find_installed_version(name)
        if known is None or (name, extras) in done:
            continue
        done.add((name, extras))
        found[name] = known
        for text in distribution(name).requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append(inner)
    return found


def find_unconstrained_versions(lines: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for every installed version that is not that of the constraints.

    Args:
        lines: Lines of the constraints file.

    """
    for line in lines:
        if match := re.fullmatch(r"([\w.-]+)==([\w.!]+)", line.strip()):
            found = find_installed_version(match[1])
            if found not in (None, match[2]):
                yield f"{match[1]} is {found}; the tests ran with {match[2]}."


def main(args: Sequence[str]) -> int:
    """Audit, or write the constraints; return 1 if an installed version is forbidden."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write tests/constraints.txt")
    if parser.parse_args(args).write:
        lines = [f"{name}=={found}" for name, found in sorted(collect_installed_versions().items())]
        CONSTRAINTS.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    forbidden = list(find_forbidden_versions())
    print(*forbidden, *find_unconstrained_versions(CONSTRAINTS.read_text(encoding="utf-8").splitlines()), sep="\n")
    return 1 if forbidden else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
