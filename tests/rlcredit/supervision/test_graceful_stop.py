"""When a signal is heeded."""

import os
import signal
import time
from types import SimpleNamespace

import pytest

from rlcredit.base.interrupts import SignalInterrupt, raise_interrupts
from rlcredit.supervision import graceful_stop
from rlcredit.supervision.graceful_stop import SignalHandler
from rlcredit.training.step_state import Phase, StepState


@pytest.fixture
def signals():
    with (heeding := SignalHandler()).handle_signals():
        yield heeding


class Training:
    def __init__(self, phase):
        self.lightning_module = SimpleNamespace(state=StepState(phase=phase))


def test_in_the_middle_of_a_step_a_signal_waits_and_a_second_does_not(signals):
    signals.training = Training(Phase.UPDATING)
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.caught == signal.SIGTERM
    with pytest.raises(SignalInterrupt, match="SIGINT"):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_step_that_takes_too_long_is_not_waited_for(signals, monkeypatch):
    monkeypatch.setattr(graceful_stop, "GRACE_SECONDS", 0.2)
    signals.training = Training(Phase.UPDATING)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SignalInterrupt, match="SIGTERM"):
        time.sleep(5)


class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def finalize_and_sleep():
    Finalized()
    time.sleep(5)


def test_a_signal_in_a_finalizer_is_heeded_soon_afterwards_and_prints_nothing(capsys):
    with pytest.raises(SignalInterrupt, match="SIGTERM"), SignalHandler().handle_signals():
        finalize_and_sleep()
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_signal_that_was_swallowed_before_an_update_waits_for_its_end_or_for_the_end_of_grace(monkeypatch):
    monkeypatch.setattr(graceful_stop, "GRACE_SECONDS", 0.4)
    with (heeding := SignalHandler()).handle_signals():
        heeding.training = Training(Phase.SAMPLING)
        Finalized()
        heeding.training = Training(Phase.UPDATING)
        asked = time.monotonic()
        time.sleep(0.1)
        with pytest.raises(SignalInterrupt, match="SIGTERM"):
            time.sleep(5)
        assert 0.3 < time.monotonic() - asked < 2


def test_a_signal_that_the_process_was_told_to_ignore_stays_ignored_and_the_others_are_given_back():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalHandler().handle_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_during_the_end_interrupts_nothing_but_a_wait(signals):
    signals.begin_end()
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SignalInterrupt), signals.allow_interrupts():
        time.sleep(5)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_during_a_wait_at_the_end_shortens_it(signals):
    signals.begin_end()
    with pytest.raises(SignalInterrupt, match="SIGHUP"), signals.allow_interrupts():
        os.kill(os.getpid(), signal.SIGHUP)


def test_a_swallowed_interrupt_of_the_command_before_is_raised_before_signals_are_handled():
    with pytest.raises(KeyboardInterrupt), raise_interrupts(signal.SIGTERM):
        finalize_and_handle()


def finalize_and_handle():
    Finalized()
    with SignalHandler().handle_signals():
        time.sleep(5)


def test_a_swallowed_signal_during_a_wait_at_the_end_shortens_it():
    with pytest.raises(SignalInterrupt, match="SIGTERM"), (ending := SignalHandler()).handle_signals():
        wait_at_end(ending)


def wait_at_end(ending):
    ending.begin_end()
    with ending.allow_interrupts():
        finalize_and_sleep()
