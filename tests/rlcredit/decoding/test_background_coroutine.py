import asyncio
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from rlcredit.decoding.background_coroutine import BackgroundCoroutine


async def return_after(event, value):
    while not event.is_set():
        await asyncio.sleep(0.001)
    return value


def count_threads():
    return sum(thread.name == "rlcredit-requests" for thread in threading.enumerate())


@contextmanager
def interrupted(seconds):
    """Raise KeyboardInterrupt in this thread after some time, as Ctrl-C would."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_it_runs_while_its_caller_does_something_else():
    event = threading.Event()
    running = BackgroundCoroutine(return_after(event, 7))
    event.set()  # had it to end first, this line would not be reached
    assert running.wait() == 7
    assert running.wait() == 7
    assert count_threads() == 0


def test_its_exception_is_raised_where_it_is_waited_for_and_only_there():
    async def fail():
        raise LookupError("gone")

    failing = BackgroundCoroutine(fail())
    failing.wait_until_ended()
    with pytest.raises(LookupError, match="gone"):
        failing.wait()
    assert count_threads() == 0


@pytest.mark.filterwarnings("error")
def test_one_that_cannot_begin_ends_the_wait_for_its_event(monkeypatch):
    def fail(coroutine):
        coroutine.close()
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "run", fail)
    failing = BackgroundCoroutine(return_after(threading.Event(), 7))
    failing.wait_for_event(threading.Event())
    with pytest.raises(OSError, match="too many open files"):
        failing.wait()
    assert count_threads() == 0


def test_the_end_of_one_of_its_tasks_ends_the_others():
    ended = threading.Event()

    async def last():
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    async def fail():
        await asyncio.sleep(0.001)
        raise LookupError

    async def both():
        await asyncio.gather(last(), fail())

    with pytest.raises(LookupError):
        BackgroundCoroutine(both()).wait()
    assert ended.is_set()


def test_cancelled_it_ends_at_once_and_cancelled_again_nothing_happens():
    running = BackgroundCoroutine(return_after(threading.Event(), 7))
    running.cancel()
    running.cancel()
    assert count_threads() == 0
    with pytest.raises(asyncio.CancelledError):
        running.wait()


@pytest.mark.parametrize("wait", ["wait", "wait_until_ended", "wait_for_event"])
def test_an_interrupted_wait_leaves_no_thread(wait):
    never = threading.Event()
    running = BackgroundCoroutine(return_after(never, 7))
    with interrupted(0.05), pytest.raises(KeyboardInterrupt):
        getattr(running, wait)(*([never] if wait == "wait_for_event" else []))
    assert count_threads() == 0


FORGOTTEN = """
import asyncio
from rlcredit.decoding.background_coroutine import BackgroundCoroutine

async def never():
    try:
        await asyncio.sleep(600)
    finally:
        print("cancelled", flush=True)

BackgroundCoroutine(never())
"""


def test_the_end_of_the_process_cancels_it():
    ended = subprocess.run([sys.executable, "-c", FORGOTTEN], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "cancelled\n", "")
