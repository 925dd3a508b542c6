"""Decide who is at fault when judging fails: a completion, the function that judges, or the reference."""

import math
import os
import traceback
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, Self, TypeVar

from rlcredit.verification.worker_replies import Outcome, Reply

ValueType = TypeVar("ValueType")

AT_FAULT = -math.inf
"""Value, below all others, of a completion that makes a function raise, hang or die; it is then replaced."""

UNTOLD_VALUE = math.nan
"""Value of a completion of which nobody can tell, because the function or the reference is at fault."""


def judge_or_blame(judge: Callable[[], ValueType], judge_reference: Callable[[], Any]) -> ValueType | float | None:
    """Return the value of ``judge``; if it raises, 0 where the answer is at fault and None where the reference is.

    Whatever reads a completion does so in here, in the trainer as in a worker, so that no completion ends a run.

    Args:
        judge: Function that judges the answer.
        judge_reference: Function that does the same with the reference as the answer.

    Example:
        >>> judge_or_blame(lambda: int("5") == 5, lambda: int("5"))
        True
        >>> judge_or_blame(lambda: int("five") == 5, lambda: int("5"))
        0.0
        >>> judge_or_blame(lambda: int("5") == int("five"), lambda: int("five")) is None
        True

    """
    try:
        return judge()
    except Exception:  # noqa: BLE001  (a completion may make a parser raise anything)
        pass
    try:
        judge_reference()
    except Exception:  # noqa: BLE001  (so may a reference)
        return None
    return 0.0


class UserCall(Protocol):
    """What a user's function is asked about some completions of one prompt, how, and what it must return.

    Attributes:
        completions: Completions that it judges together.
        reference: Reference answer as if it were a completion; nothing where there is none.
        misread: Outcome where a function returns something else.

    """

    misread: Outcome

    @property
    def completions(self) -> Sequence[Any]: ...  # noqa: D102

    @property
    def reference(self) -> Any: ...  # noqa: D102

    def about(self, completions: Sequence[Any]) -> Self:
        """Return the same call about other completions."""
        ...

    def describe(self) -> str:
        """Return the call in words."""
        ...

    @classmethod
    def check_signature(cls, function: Callable[..., Any]) -> None:
        """Refuse a function that cannot be called so.

        Raises:
            TypeError: with how it is to be called.

        """
        ...

    def call_function(self, function: Callable[..., Any]) -> Any:
        """Call a function, and return what it returns."""
        ...

    def read_values(self, result: Any) -> Reply:
        """Return the reply to what the function has returned."""
        ...


Ask = Callable[[Sequence[Any]], Sequence[Reply | None]]
"""Function that asks calls, and returns a reply to each; None where the machine gave none."""


def judge_calls(calls: Sequence[UserCall], ask: Ask) -> list[Reply]:
    """Return a value for each completion of each call, whoever is at fault for what fails.

    A call that fails is asked completion by completion. What fails alone is at fault, unless the reference as
    completion fails too, and the others are asked again without it. If none fails alone, or the others fail again,
    nobody can tell.

    Args:
        calls: Calls, each about one prompt.
        ask: Function that asks several calls at a time.

    Returns:
        Values, :data:`AT_FAULT` and :data:`UNTOLD_VALUE` among them. ``fault`` says why; the outcome is ``RAISED``
        where a completion is at fault, and another but ``ANSWERED`` where the function is.

    """
    attributions = [_attribute_failure(call) for call in calls]
    open_calls = {number: next(attribution) for number, attribution in enumerate(attributions)}
    judgements: dict[int, Reply] = {}
    while open_calls:
        replies = iter(ask([call for batch in open_calls.values() for call in batch]))
        for number, batch in list(open_calls.items()):
            try:
                open_calls[number] = attributions[number].send([next(replies) for _ in batch])
            except StopIteration as ended:
                judgements[number] = ended.value
                del open_calls[number]
    return [judgements[number] for number in range(len(calls))]


def _attribute_failure(call: UserCall) -> Generator[list[UserCall], list[Reply | None], Reply]:
    """Yield calls that are to be asked, get their replies, and return the values of the first one's completions."""
    (reply,) = yield [call]
    untold_values = [UNTOLD_VALUE] * len(call.completions)
    if reply is None:
        return Reply(untold_values)
    if not _has_failed(reply):
        return reply if reply.values else reply._replace(values=untold_values)
    singles = (
        (yield [call.about([completion]) for completion in call.completions]) if len(call.completions) > 1 else [reply]
    )
    faults = [single.fault if single and _has_failed(single) else None for single in singles]
    innocent = [text for text, fault in zip(call.completions, faults, strict=True) if fault is None]
    if len(innocent) == len(faults):
        return Reply(untold_values, reply.fault, Outcome.BROKEN)
    innocent_calls = [call.about(innocent)] if innocent else []
    reference_calls = [call.about([call.reference])] if call.reference else []
    new_replies = (yield [*innocent_calls, *reference_calls]) if innocent_calls or reference_calls else []
    if innocent_calls and new_replies[0] and not new_replies[0].values:
        return Reply(untold_values, new_replies[0].fault, Outcome.BROKEN)
    values = iter(new_replies[0].values if innocent_calls and new_replies[0] else [UNTOLD_VALUE] * len(innocent))
    is_excused = bool(reference_calls and new_replies[-1] and _has_failed(new_replies[-1]))
    guilty = next(number for number, fault in enumerate(faults) if fault is not None)
    message = f"{faults[guilty]}, with the completion {call.completions[guilty]!r:.80} alone"
    blame = UNTOLD_VALUE if is_excused else AT_FAULT
    judgements = [next(values) if fault is None else blame for fault in faults]
    return Reply(judgements, message, Outcome.BROKEN if is_excused else Outcome.RAISED)


def _has_failed(reply: Reply) -> bool:
    """Whether a completion may be what made a function fail; what returns no answer is itself at fault."""
    return reply.outcome in (Outcome.RAISED, Outcome.BROKEN)


def describe_error(error: BaseException) -> str:
    """Return the error of a user's code and its place there, in words that go on after its name.

    Example:
        >>> describe_error(ValueError("no number"))
        'it raised ValueError: no number'

    """
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    library_paths = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(os.__file__), "<")
    user_places = [place for place in places if not place[0].startswith(library_paths)]
    location = f" ({os.path.basename(user_places[-1][0])}, line {user_places[-1][1]})" if user_places else ""
    if type(error) is TypeError and not user_places:
        return str(error)
    return f"it raised {type(error).__name__}{_describe_message(error)}{location}"


def _describe_message(error: BaseException) -> str:
    try:
        return f": {' '.join(str(error).split())}"[:300] if str(error) else ""
    except Exception:  # noqa: BLE001  (an error of a user's may be unable to say what it is)
        return ""
