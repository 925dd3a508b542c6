"""``rlcredit --version``: what runs, and on what."""

from importlib.metadata import PackageNotFoundError, version

import rlcredit

UNDER_IT = ("torch", "lightning", "transformers", "peft")


def is_version_request(args: list[str]) -> bool:
    """Whether a command line asks for nothing else."""
    return args == ["--version"]


def render_versions() -> str:
    """Return the version of rlcredit and of what it stands on, one a line; nothing of it is imported."""
    return "\n".join(
        [f"rlcredit {rlcredit.__version__}", *(f"{name} {_find_package_version(name)}" for name in UNDER_IT)]
    )


def _find_package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
