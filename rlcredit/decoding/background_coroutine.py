"""A coroutine in a thread of its own, which goes on while its caller does something else."""

import asyncio
import atexit
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class BackgroundCoroutine(Generic[Result]):
    """Run a coroutine from now on, in a thread with an event loop of its own.

    It is cancelled if its caller is interrupted while it waits, and when the process ends.

    Args:
        coroutine: Coroutine, not yet begun.

    """

    def __init__(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        self._outcome: concurrent.futures.Future[Result] = concurrent.futures.Future()
        self._has_begun = threading.Event()
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._asyncio_task: asyncio.Task[Result] | None = None
        # A daemon, because Python waits for any other thread before it lets this class cancel it.
        self._own_thread = threading.Thread(
            target=self._run_to_end, args=(coroutine,), name="rlcredit-requests", daemon=True
        )
        self._own_thread.start()
        atexit.register(self.cancel)

    def wait(self) -> Result:
        """Wait until it has ended, and return its result or raise its exception."""
        try:
            return self._outcome.result()
        finally:
            self.cancel()

    def wait_until_ended(self) -> None:
        """Wait until it has ended, in whatever way; :meth:`wait` still tells which."""
        with self._cancel_if_interrupted():
            concurrent.futures.wait([self._outcome])

    def wait_for_event(self, event: threading.Event) -> None:
        """Wait for an event that the coroutine sets, at the latest when it ends."""
        self._outcome.add_done_callback(lambda _: event.set())  # it may fail before it begins
        with self._cancel_if_interrupted():
            event.wait()

    def cancel(self) -> None:
        """Cancel it unless it has ended, and wait for the end of its thread."""
        self._has_begun.wait()
        if self._event_loop is not None and self._asyncio_task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended by itself
                self._event_loop.call_soon_threadsafe(self._asyncio_task.cancel)
        self._own_thread.join()
        atexit.unregister(self.cancel)

    @contextlib.contextmanager
    def _cancel_if_interrupted(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    def _run_to_end(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        try:
            result = asyncio.run(self._note_task(coroutine))
        except BaseException as error:  # noqa: BLE001  (it is raised where somebody waits)
            coroutine.close()  # without an event loop it has not begun
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(result)
        finally:
            self._has_begun.set()

    async def _note_task(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        self._event_loop, self._asyncio_task = asyncio.get_running_loop(), asyncio.current_task()
        self._has_begun.set()
        return await coroutine
