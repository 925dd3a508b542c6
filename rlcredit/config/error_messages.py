"""What code of somebody else's raises, in words: the exception and the line of one's own that it comes from."""

import inspect
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlcredit.config.module_source import INSTALLATION_FOLDERS

REFUSAL_MARK = "class path refused: "
"""Begins every refusal, so that it is found again in the message that a parser builds around it."""

UNORDERED_MARK = " does not have a deterministic implementation"
"""What torch says, behind its name, of an operation that it refuses in deterministic mode."""

_OWN_FOLDERS = [Path(__file__).parents[1], Path(__file__).parents[2] / "callbacks"]


def describe_exception(error: BaseException) -> str:
    """Return type and message of an error, and the file and line where it was raised.

    Where a library has raised it, the line is the last one before the library, which somebody can change.

    Example:
        >>> describe_exception(KeyError("x"))
        "KeyError: 'x'"

    """
    message = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    place = _find_error_place(error)
    if UNORDERED_MARK in message:
        operation, location = message.partition(UNORDERED_MARK)[0], f" ({place})" if place else ""
        return (
            f"{operation} is not deterministic{location}, and a run must repeat bit for bit. Replace it, or set "
            "--trainer.deterministic warn"
        )
    return f"{type(error).__name__}{f': {message}' if message else ''}{f' ({place})' if place else ''}"


def find_root_cause(error: BaseException) -> BaseException:
    """Return the error that a chain of errors began with."""
    while (cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        error = cause
    return error


def find_raised_error(error: BaseException, package: str) -> BaseException:
    """Return the first error of a chain that code outside of a package has raised: the last wraps it for its caller.

    Args:
        error: Error at the end of the chain.
        package: Name of a package's folder.

    """
    while error.__cause__ is not None:
        frames = traceback.extract_tb(error.__traceback__)
        if not frames or package not in Path(frames[-1].filename).parts:
            break
        error = error.__cause__
    return error


def _find_error_place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return find_own_place(error) or _name_places(frames[-1:])


def find_own_place(error: BaseException) -> str:
    """Return the last line of somebody's own that an error has come through, with its file; empty if none is."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if frame.filename[0] != "<" and _is_user_file(Path(frame.filename))]
    return _name_places(user_frames[-1:])


def find_own_source(function: Callable[..., Any]) -> str:
    """Return the file and first line of a function of somebody's own; empty if it is a library's, ours, or typed in."""
    code = inspect.unwrap(function).__code__
    is_own = code.co_filename[0] != "<" and _is_user_file(Path(code.co_filename))
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if is_own else ""


def _name_places(frames: Sequence[traceback.FrameSummary]) -> str:
    return "".join(f"{Path(frame.filename).name}, line {frame.lineno}" for frame in frames)


def _is_user_file(file: Path) -> bool:
    """Whether a file is neither Python's, nor installed, nor ours."""
    foreign_folders = [*_OWN_FOLDERS, Path(traceback.__file__).parent]
    return INSTALLATION_FOLDERS.isdisjoint(file.parts) and not any(map(file.is_relative_to, foreign_folders))
