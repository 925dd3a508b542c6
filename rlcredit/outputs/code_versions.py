"""The versions of the code that a run is made with."""

import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

VERSIONED_PACKAGES = ("torch", "lightning", "transformers", "peft", "mlflow")


def read_code_versions() -> dict[str, str]:
    """Return the commit of this source tree and the versions of the packages that it uses."""
    return {
        "git_commit": read_git_commit(),
        **{f"version.{package}": version(package) for package in VERSIONED_PACKAGES},
    }


def describe_code_versions(versions: Mapping[str, str]) -> str:
    """Return the versions that :func:`read_code_versions` returns in a line."""
    return ", ".join(f"{key.removeprefix('version.')} {value}" for key, value in versions.items())


def read_git_commit() -> str:
    """Return the commit of this source tree, marked if files have been edited since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
