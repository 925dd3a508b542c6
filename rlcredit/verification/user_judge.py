"""Call a user's verifier in the judging process: import it by name and convert its answer to a number."""

import inspect
from collections.abc import Callable
from typing import Any

from rlcredit.verification.fault_attribution import judge_or_blame
from rlcredit.verification.user_callable import import_user_callable

SIGNATURE = "(completion: str, answer: str, metadata: dict) -> bool | float"


def load_user_verifier(path: str, folder: str) -> Callable[..., Any]:
    """Import a verifier; see :func:`~rlcredit.verification.user_callable.import_user_callable`.

    Args:
        path: Dotted path of the function or class.
        folder: Folder where modules may lie too; the working directory of the run.

    Raises:
        Exception: whatever importing raises.
        TypeError: it cannot be called as :data:`SIGNATURE` says.

    """
    verifier = import_user_callable(path, folder, SIGNATURE)
    try:
        inspect.signature(verifier).bind("", "", {})
    except TypeError as error:
        raise TypeError(f"it cannot be called as {SIGNATURE}: {error}") from None
    return verifier


def read_user_judgement(result: Any) -> float:
    """Return a verifier's result as a number from 0 to 1.

    Raises:
        TypeError: it is neither a bool nor such a number.

    Example:
        >>> read_user_judgement(True), read_user_judgement(0.5)
        (1.0, 0.5)

    """
    if not hasattr(result, "__float__") or not 0 <= float(result) <= 1:
        raise TypeError(f"it returned {result!r:.80}; expected True, False or a number from 0 to 1")
    return float(result)


def prepare_verifier_trial(path: str, folder: str, example: tuple[str, str, dict[str, Any]]) -> Callable[[], Any]:
    """Import a verifier, and return what asks it about an example; arguments as for :func:`make_user_judge`."""
    verifier = load_user_verifier(path, folder)
    return lambda: read_user_judgement(verifier(*example))


def make_user_judge(path: str, folder: str, example: tuple[str, str, dict[str, Any]]) -> Callable[..., float | None]:
    """Return the verifier; made in the worker, where it is asked once before the process is locked.

    What raises because of the completion scores 0; what raises with the reference as completion too is not judged.

    Args:
        path: Dotted path of the verifier, see :func:`load_user_verifier`.
        folder: Folder that it is imported from, see :func:`load_user_verifier`.
        example: Completion, answer and metadata, so that what is imported late has been imported.

    """
    verifier = load_user_verifier(path, folder)
    read_user_judgement(verifier(*example))

    def judge(completion: str, answer: str, metadata: dict[str, Any]) -> float | None:
        return judge_or_blame(
            lambda: read_user_judgement(verifier(completion, answer, metadata)),
            lambda: read_user_judgement(verifier(answer, answer, metadata)),
        )

    return judge
