"""Interrupts, wherever they come."""

import gc
import signal
import sys
import time
import weakref

import pytest

from rlcredit.base.interrupts import raise_interrupts


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
    asked = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as raised, raise_interrupts(signal.SIGINT):
        swallow_and_sleep(swallow)
    assert raised.value.args == (signal.SIGINT,)
    assert time.monotonic() - asked < 2
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


def test_a_second_signal_does_not_wait():
    with raise_interrupts(signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with raise_interrupts(signal.SIGINT):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
