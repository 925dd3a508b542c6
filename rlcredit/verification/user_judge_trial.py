"""Try a user's verifier or reward function on one example, first free and then locked, and report errors.

Run as a process of its own, so that a function which hangs, dies or ends Python takes nothing with it.
"""

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from rlcredit.verification import sandbox


def find_function_fault(
    descriptor: int,
    prepare: Callable[..., Callable[[], Any]],
    arguments: tuple[Any, ...],
    said: str,
    advice: str,
    seconds: float,
) -> str:
    """Return the fault of a user's function; empty if there is none.

    Args:
        descriptor: File descriptor that stays open.
        prepare: Importable function; called with ``arguments``, it imports the user's function and returns what calls
            that.
        arguments: Arguments of ``prepare``.
        said: What the function is called with, in words.
        advice: What the function should do where it raises.
        seconds: Seconds that one call may take.

    """
    try:
        attempt = prepare(*arguments)
    except BaseException as error:  # noqa: BLE001  (importing runs the user's code)
        return f"it cannot be used: {_describe_error(error)}"
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 2 * seconds)
    try:
        attempt()
    except BaseException as error:  # noqa: BLE001
        return f"{said}, {_describe_error(error)}. {advice}"
    if (took := time.monotonic() - started) > seconds:
        return f"{said}, it took {took:.1f} s, and a completion may take {seconds:g} s"
    if sandbox.can_lock_process():
        sandbox.lock_process(descriptor)
    try:
        attempt()
    except BaseException as error:  # noqa: BLE001
        return (
            f"{said} in a locked process, which can open and import nothing, {_describe_error(error)}. "
            "Import at the top of its module, and read files in the __init__ of a class"
        )
    return ""


def _describe_error(error: BaseException) -> str:
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    others = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(os.__file__), "<")
    own = [place for place in places if not place[0].startswith(others)]
    where = f" ({os.path.basename(own[-1][0])}, line {own[-1][1]})" if own else ""
    if type(error) is TypeError and not own:
        return str(error)
    return f"it raised {type(error).__name__}: {error}{where}"


if __name__ == "__main__":
    request = pickle.load(sys.stdin.buffer)
    os.dup2(2, 1)  # what the function prints is no message
    os.write(int(sys.argv[1]), find_function_fault(int(sys.argv[1]), *request).encode()[:4000])
    os._exit(0)
