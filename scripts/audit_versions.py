"""Compare what is installed with what pyproject.toml and tests/constraints.txt ask for.

python scripts/audit_versions.py            says what differs, with status 1 if a version is one that must not run
python scripts/audit_versions.py --write    writes tests/constraints.txt from what is installed

The floors of pyproject.toml leave out versions with known holes; the constraints are what the tests ran with.
"""

import argparse
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PROJECT_FOLDER = Path(__file__).parents[1]
CONSTRAINTS_FILE = _PROJECT_FOLDER / "tests" / "constraints.txt"
FORBIDDEN_VERSIONS = {
    "lightning": "==2.6.2,==2.6.3",  # carried malware
    "pytorch-lightning": "==2.6.2,==2.6.3",
}
"""Versions that no floor leaves out where another package brings them, each alone."""

CONSTRAINTS_HEAD = """\
# What the tests ran with: pip install -e ".[dev]" -c tests/constraints.txt
# Written by scripts/audit_versions.py --write. Builds of one version (torch's +cpu, +cu130) are not told apart.
"""


def read_declared_requirements() -> Iterator[Requirement]:
    """Yield the requirements of pyproject.toml, extras included."""
    project = tomllib.loads((_PROJECT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
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
        installed_version = find_installed_version(requirement.name)
        if installed_version is not None and not requirement.specifier.contains(installed_version, prereleases=True):
            yield f"{requirement.name} is {installed_version}, and pyproject.toml asks for {requirement.specifier}."
    for name, versions in FORBIDDEN_VERSIONS.items():
        if find_installed_version(name) in [text.removeprefix("==") for text in versions.split(",")]:
            yield f"{name} is {find_installed_version(name)}, which must not run. Remove it."


def collect_installed_versions() -> dict[str, str]:
    """Return the versions of the installed requirements of pyproject.toml, and of the packages that these require."""
    queue = list(read_declared_requirements())
    versions: dict[str, str] = {}
    walked_requirements: set[tuple[str, frozenset[str]]] = set()
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        extras = frozenset(requirement.extras)
        installed_version = find_installed_version(name)
        if installed_version is None or (name, extras) in walked_requirements:
            continue
        walked_requirements.add((name, extras))
        versions[name] = installed_version
        for text in distribution(name).requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                queue.append(inner)
    return versions


def find_unconstrained_versions(lines: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for every installed version that differs from the constraints.

    Args:
        lines: Lines of the constraints file.

    """
    for line in lines:
        if match := re.fullmatch(r"([\w.-]+)==([\w.!]+)", line.strip()):
            installed_version = find_installed_version(match[1])
            if installed_version not in (None, match[2]):
                yield f"{match[1]} is {installed_version}; the tests ran with {match[2]}."


def main(args: Sequence[str]) -> int:
    """Audit, or write the constraints; return 1 if an installed version is forbidden."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write tests/constraints.txt")
    if parser.parse_args(args).write:
        lines = [
            f"{name}=={installed_version}" for name, installed_version in sorted(collect_installed_versions().items())
        ]
        CONSTRAINTS_FILE.write_text(CONSTRAINTS_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    forbidden = list(find_forbidden_versions())
    print(*forbidden, *find_unconstrained_versions(CONSTRAINTS_FILE.read_text(encoding="utf-8").splitlines()), sep="\n")
    return 1 if forbidden else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
