"""Work done before a command is imported: versions, and reading its configuration."""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import rlcredit
from rlcredit.base.exit_status import FINISHED, REFUSED
from rlcredit.cli.config_checks import read_checked_config
from rlcredit.cli.config_schema import Roots
from rlcredit.cli.run_words import resolve_run_words

UNDER_IT = ("torch", "lightning", "transformers", "peft")


def print_versions(words: Sequence[str]) -> int:
    """Print the versions, and return the exit status."""
    print(render_versions())
    return FINISHED


def render_versions() -> str:
    """Return the versions of rlcredit and its main dependencies, one per line, without importing them."""
    return "\n".join(
        [f"rlcredit {rlcredit.__version__}", *(f"{name} {_find_package_version(name)}" for name in UNDER_IT)]
    )


def _find_package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def read_configuration_or_exit(args: Sequence[str], roots: Roots = MappingProxyType({})) -> dict[str, Any]:
    """Return the merged configuration of files and flags, or exit with a message if it cannot be read.

    Args:
        args: Arguments of the command line.
        roots: Class behind each top-level key, if they are imported.

    """
    try:
        if config := read_checked_config(resolve_run_words(args), roots):
            return config
        raise ValueError("no configuration is named. Say which one, as `--config configs/tiny.yaml`.")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
