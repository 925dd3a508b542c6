"""Work done before a command is imported: help, version, and reading its configuration."""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from jsonargparse import ArgumentParser

import rlcredit
from rlcredit.base.exit_status import REFUSED
from rlcredit.cli.config_checks import read_checked_config
from rlcredit.cli.config_schema import Roots

UNDER_IT = ("torch", "lightning", "transformers", "peft")


def is_version_request(args: list[str]) -> bool:
    """Whether a command line asks only for the version."""
    return args == ["--version"]


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


DESCRIPTION = (
    "Credit assignment in reinforcement learning with verifiable rewards, as stacks of callbacks. Beside the "
    "subcommands below, `rlcredit campaign FILE` runs conditions x seeds, and `rlcredit report CAMPAIGN` says "
    "what they found; `rlcredit card` judges a credit operator. `rlcredit try` answers a few training questions "
    "before anything is trained, `rlcredit sample` asks a policy one question, `rlcredit evaluate` has policies "
    "answer the questions of task files, and `rlcredit export` writes a trained policy as a plain model. "
    "`rlcredit list` says what a configuration can name, `rlcredit --version` what is installed."
)

SUBCOMMANDS = {
    "fit": "Runs the full optimization routine.",
    "validate": "Perform one evaluation epoch over the validation set.",
    "explain": "Check a configuration and print it as the program it is; nothing is loaded.",
}


def render_help() -> str:
    """Return the help text that LightningCLI would print; a test compares the two."""
    parser = ArgumentParser(description=DESCRIPTION)
    parser.add_argument("-c", "--config", action="config", help="Path to a configuration file in json or yaml format.")
    subcommands = parser.add_subcommands()
    for name, description in SUBCOMMANDS.items():
        subcommands.add_subcommand(name, ArgumentParser(), help=description)
    return parser.format_help()


def is_help_request(args: Sequence[str]) -> bool:
    """Whether a command line asks only for help.

    Example:
        >>> is_help_request(["--help"]), is_help_request(["fit", "--help"])
        (True, False)

    """
    return list(args) in (["-h"], ["--help"])


def read_configuration_or_exit(args: Sequence[str], roots: Roots = MappingProxyType({})) -> dict[str, Any]:
    """Return the merged configuration of files and flags, or exit with a message if it cannot be read.

    Args:
        args: Arguments of the command line.
        roots: Class behind each top-level key, if they are imported.

    """
    try:
        return read_checked_config(args, roots)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
