"""Try a user's verifier on one example, first free and then locked, and report errors.

Run as a process of its own, so that a verifier which hangs, dies or ends Python takes nothing with it.
"""

import os
import pickle
import signal
import sys
import time
import traceback
from typing import Any

from rlcredit.verification import sandbox
from rlcredit.verification.user_judge import load_user_verifier, read_user_judgement


def find_verifier_fault(descriptor: int, path: str, folder: str, example: tuple[Any, ...], seconds: float) -> str:
    """Return the fault of a verifier; empty if there is none.

    Args:
        descriptor: File descriptor that stays open.
        path: Dotted path of the verifier, see :func:`~rlcredit.verification.user_judge.load_user_verifier`.
        folder: Folder that it is imported from, see :func:`~rlcredit.verification.user_judge.load_user_verifier`.
        example: Completion, answer and metadata.
        seconds: Seconds that one verdict may take.

    """
    try:
        verifier = load_user_verifier(path, folder)
    except BaseException as error:  # noqa: BLE001  (importing runs the user's code)
        return f"it cannot be used: {_describe_error(error)}"
    asked = f"called with the completion {example[0]!r:.80} with the answer {example[1]!r:.80}"
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 2 * seconds)
    try:
        read_user_judgement(verifier(*example))
    except BaseException as error:  # noqa: BLE001
        return f"{asked}, {_describe_error(error)}. Return False for a completion that it cannot read"
    if (took := time.monotonic() - started) > seconds:
        return f"{asked}, it took {took:.1f} s, and a completion may take {seconds:g} s"
    if sandbox.can_lock_process():
        sandbox.lock_process(descriptor)
    try:
        read_user_judgement(verifier(*example))
    except BaseException as error:  # noqa: BLE001
        return (
            f"{asked} in a locked process, which can open and import nothing, {_describe_error(error)}. "
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
    os.dup2(2, 1)  # what the verifier prints is no message
    os.write(int(sys.argv[1]), find_verifier_fault(int(sys.argv[1]), *request).encode()[:4000])
    os._exit(0)
