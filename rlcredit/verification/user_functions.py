"""Verifiers and reward functions of one's own, as the trainer knows them: a dotted path, a file, and a first try."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlcredit.config.module_source import is_standard_library, locate_module
from rlcredit.verification.workers import START_TIMEOUT, build_worker_environment


def require_user_path(setting: str, path: str, signature: str, example: str) -> None:
    """Refuse a text that is no dotted path of a user's function.

    Args:
        setting: Setting that holds the path.
        path: Text in question.
        signature: How such a function is called.
        example: Example of a path, and where it leads.

    Raises:
        ValueError: it is no dotted path, or names something of Python's own.

    """
    if "." not in path or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError(
            f"{setting}: {path!r} is not a dotted path. Name a function {signature}, for example {example}."
        )
    if is_standard_library(path):
        raise ValueError(f"{setting}: {path} is part of Python and not a {setting.rpartition('.')[2].rstrip('s')}.")


def find_user_file(path: str, folder: str) -> Path | None:
    """Return the file of a user's function, found without importing it; None if there is none.

    Args:
        path: Dotted path of the function.
        folder: Folder where its module may lie.

    """
    here = Path(folder, *path.split(".")[:-1]).with_suffix(".py")
    if here.is_file():
        return here
    spec, _ = locate_module(path)
    return Path(spec.origin) if spec and spec.origin else None


def find_user_fault(
    prepare: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...], said: str, advice: str, seconds: float
) -> str:
    """Try a user's function in a process of its own, and return its fault; empty if there is none.

    Args:
        prepare: Importable function; called with ``arguments``, it imports the user's function and returns what calls
            that.
        arguments: Arguments of ``prepare``.
        said: What the function is called with, in words.
        advice: What the function should do where it raises.
        seconds: Seconds that one call may take.

    """
    end, own = os.pipe()
    command = [sys.executable, "-P", "-m", "rlcredit.verification.user_judge_trial", str(own)]
    with open(end, "rb") as answered:
        try:
            tried = subprocess.run(
                command,
                input=pickle.dumps((prepare, arguments, said, advice, seconds)),
                pass_fds=[own],
                env=build_worker_environment(),
                capture_output=True,
                timeout=START_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it was not imported within {START_TIMEOUT:g} s"
        finally:
            os.close(own)
        found = answered.read().decode()
    if tried.returncode == 0:
        return found
    last = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    ended = f"it ended its process (status {tried.returncode}) {last}".strip()
    return f"one example took it longer than {seconds:g} s" if tried.returncode == -14 else ended
