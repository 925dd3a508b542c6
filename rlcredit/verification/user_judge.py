"""Call a user's function in the process that judges with it: import it, ask it, and read what it returns."""

import asyncio
import importlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlcredit.config.module_source import explain_missing_name
from rlcredit.verification.fault_attribution import UserCall, describe_error
from rlcredit.verification.process_tree import list_descendants
from rlcredit.verification.sandbox import LateImportError
from rlcredit.verification.worker_replies import Outcome, Reply

CONCURRENT_CALLS = 32
"""Calls of an asynchronous function that are awaited at a time."""

LOCK_ERRORS = (OSError, ImportError, LateImportError)
"""Errors that a lock may cause."""

_LEAVE_SECONDS = 1.0
"""Seconds that a process which importing has started may take to end."""


def import_user_function(path: str, folder: str) -> Callable[..., Any]:
    """Import a function, or instantiate a class without arguments.

    Args:
        path: Dotted path of the function or class.
        folder: Folder where modules may lie too; the working directory of the run.

    Raises:
        BaseException: whatever importing raises.
        TypeError: there is none, it cannot be called, or importing it leaves a process behind.

    """
    pids = list_descendants(os.getpid())
    sys.path.append(folder)
    module, _, name = path.rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        if complaint := explain_missing_name(path, error, callable):
            raise TypeError(complaint) from error
        raise
    _refuse_left_processes(pids, "importing its module leaves a process behind. Start it in the __init__ of a class")
    function = target() if inspect.isclass(target) else target
    if not callable(function):
        raise TypeError("it is not a function, and its instances cannot be called")
    return function


def _refuse_left_processes(pids: Sequence[int], complaint: str) -> None:
    """Refuse processes that go on, but for those before."""
    end = time.monotonic() + _LEAVE_SECONDS
    while not set(pids).issuperset(list_descendants(os.getpid())):
        if time.monotonic() > end:
            raise TypeError(complaint)
        time.sleep(0.05)


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Whether a function, or an object that can be called, must be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


class UserJudge:
    """A user's function in the process that judges with it.

    Args:
        function: Function, or object that can be called.
        seconds: Seconds that one call of an asynchronous function may take.
        hint: What is added where it raises what a lock makes a function raise.

    """

    def __init__(self, function: Callable[..., Any], seconds: float, hint: str = "") -> None:
        self.function, self.seconds, self.hint = function, seconds, hint
        self.is_asynchronous = is_asynchronous(function)
        self.loop = asyncio.new_event_loop() if self.is_asynchronous else None

    def __call__(self, calls: Sequence[UserCall]) -> Iterator[tuple[int, Reply]]:
        """Yield the reply to each call with its place, as they come."""
        if self.loop is None:
            yield from enumerate(map(self._ask_function, calls))
            return
        places = asyncio.Semaphore(CONCURRENT_CALLS)
        waiting = {self.loop.create_task(self._await_function(call, places)): place for place, call in enumerate(calls)}
        while waiting:
            tasks, _ = self.loop.run_until_complete(asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED))
            yield from [(waiting.pop(task), task.result()) for task in tasks]

    def _ask_function(self, call: UserCall) -> Reply:
        try:
            result = call.call_function(self.function)
        except BaseException as error:  # noqa: BLE001  (a completion may make a function raise anything)
            return self._describe_failure(error)
        if inspect.iscoroutine(result):
            result.close()
            return Reply((), "it returned a coroutine. Define it by `async def`", Outcome.MISREAD)
        return self._read_values(call, result)

    async def _await_function(self, call: UserCall, places: asyncio.Semaphore) -> Reply:
        async with places:
            limit = asyncio.timeout(self.seconds)
            try:
                async with limit:
                    result = await call.call_function(self.function)
            except BaseException as error:  # noqa: BLE001  (a completion may make a function raise anything)
                late = Reply((), f"it took longer than {self.seconds:g} s", Outcome.BROKEN)
                return late if limit.expired() else self._describe_failure(error)
        return self._read_values(call, result)

    def _read_values(self, call: UserCall, result: Any) -> Reply:
        try:
            return call.read_values(result)
        except Exception as error:  # noqa: BLE001  (what it returned may raise anything when it is read)
            return Reply((), describe_error(error), call.misread)

    def _describe_failure(self, error: BaseException) -> Reply:
        hint = self.hint if isinstance(error, LOCK_ERRORS) else ""
        return Reply((), describe_error(error) + hint, Outcome.RAISED)


def make_user_judge(path: str, folder: str, seconds: float, locked: bool, trial: Sequence[UserCall]) -> UserJudge:
    """Return the judge that asks a function; made in the worker, or before its copies are locked.

    Args:
        path: Dotted path of the function or class.
        folder: Folder that it is imported from; see :func:`import_user_function`.
        seconds: Seconds that one call of an asynchronous function may take.
        locked: Whether the process will be locked; the function is then asked once before, so that what it imports
            late has been imported.
        trial: Calls that it is asked then.

    Raises:
        BaseException: whatever importing raises.
        TypeError: it cannot be called as the calls are.

    """
    pids = list_descendants(os.getpid())
    function = import_user_function(path, folder)
    trial[0].check_signature(function)
    judge = UserJudge(function, seconds)
    if locked and judge.is_asynchronous:
        raise TypeError("it is asynchronous, and a locked process can wait for nothing. Set `locked: false`")
    is_warm = locked and all(reply.values for _, reply in judge(trial))
    if locked:
        _refuse_left_processes(pids, "it leaves a process behind, and a locked process has none. Set `locked: false`")
    if is_warm:
        judge.hint = (
            " (in a locked process, which can open and import nothing: import at the top of its module, read files in "
            "the __init__ of a class, or set `locked: false`)"
        )
    return judge
