"""Interrupts, wherever they come."""

import gc
import signal
import subprocess
import sys
import time
import weakref

import pytest

from rlcredit.base.interrupts import await_retry, raise_interrupts


class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def call_back_for_weak_reference():
    class Referent:
        pass

    gone = Referent()
    reference = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGINT))
    del gone
    assert reference() is None


def collect_garbage():
    def interrupt(phase, info):
        gc.callbacks.remove(interrupt)
        signal.raise_signal(signal.SIGINT)

    gc.callbacks.append(interrupt)
    gc.collect()


def swallow_and_sleep(*swallow):
    for each in swallow:
        each()
    time.sleep(5)


@pytest.mark.parametrize("swallow", [Finalized, call_back_for_weak_reference, collect_garbage])
def test_an_interrupt_that_python_swallows_is_raised_soon_afterwards(swallow, capsys):
    hook = sys.unraisablehook
    began = time.monotonic()
    gc.collect()
    collection = time.monotonic() - began  # the more, the more tests have left behind
    asked = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as raised, raise_interrupts(signal.SIGINT):
        swallow_and_sleep(swallow)
    assert raised.value.args == (signal.SIGINT,)
    assert time.monotonic() - asked < 2 + 2 * collection
    assert capsys.readouterr() == ("", "")
    assert sys.unraisablehook is hook
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_an_interrupt_that_is_swallowed_twice_is_raised_again_twice(capsys):
    class Slow:
        def __del__(self):
            time.sleep(0.5)
            slept.append(True)

    slept = []
    with pytest.raises(KeyboardInterrupt), raise_interrupts(signal.SIGINT):
        swallow_and_sleep(Finalized, Slow)
    assert not slept
    assert capsys.readouterr() == ("", "")


def test_other_errors_in_finalizers_are_reported_as_before(monkeypatch):
    class Faulty:
        def __del__(self):
            raise RuntimeError("a fault of its own")

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(str(unraisable.exc_value)))
    with raise_interrupts(signal.SIGINT):
        Faulty()
        time.sleep(0.1)
    assert reported == ["a fault of its own"]


SECOND_SIGNAL = """
import signal, sys
from rlcredit.base.interrupts import await_retry, raise_interrupts
with raise_interrupts(signal.SIGINT, signal.SIGTERM):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGTERM)
        print("taken back")
"""


def test_a_second_signal_of_another_kind_ends_the_process_without_a_traceback():
    done = subprocess.run([sys.executable, "-c", SECOND_SIGNAL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


def test_the_end_of_a_process_is_not_disturbed():
    before = signal.getsignal(signal.SIGINT)
    try:
        with raise_interrupts(signal.SIGINT, last=True):
            assert signal.getsignal(signal.SIGINT) is not before
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_swallowed_interrupt_is_not_lost_to_a_handler_that_comes_after_it():
    with pytest.raises(KeyboardInterrupt), raise_interrupts(signal.SIGINT):
        swallow_and_handle()


def swallow_and_handle():
    Finalized()
    await_retry()
    raise AssertionError("the interrupt is lost")


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with raise_interrupts(signal.SIGINT):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
