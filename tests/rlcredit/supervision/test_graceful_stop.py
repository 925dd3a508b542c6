"""When a signal is heeded."""

import os
import signal
import time
from types import SimpleNamespace

import pytest

from rlcredit.supervision import graceful_stop
from rlcredit.supervision.graceful_stop import SignalHandler, SignalInterrupt
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
    monkeypatch.setattr(graceful_stop, "GRACE", 0.2)
    signals.training = Training(Phase.UPDATING)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SignalInterrupt, match="SIGTERM"):
        time.sleep(5)


def test_a_signal_that_the_process_was_told_to_ignore_stays_ignored_and_the_others_are_given_back():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalHandler().handle_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)
