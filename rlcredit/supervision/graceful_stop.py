"""Signals: a run that is told to stop saves a checkpoint and exits with a status that names the signal."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from rlcredit.base.exit_status import EngineUnavailable
from rlcredit.base.interrupts import ENDING_SIGNALS, SignalInterrupt, await_retry, retry_swallowed
from rlcredit.formulas.distributed import has_other_processes, sum_over_processes
from rlcredit.outputs.checkpoints import Checkpoints
from rlcredit.training.module import PolicyModule
from rlcredit.training.step_state import Phase

GRACE_SECONDS = 20.0
"""Seconds that a step or an evaluation may go on after a signal; schedulers kill after thirty."""

_HANDLED_SIGNALS = (*ENDING_SIGNALS, signal.SIGUSR1)


class SignalHandler:
    """Turns the first signal into a :class:`SignalInterrupt` as soon as no update is half done.

    While completions are sampled nothing changes, so the run stops at once. In an update it stops after the step. A
    second signal, or the end of ``GRACE_SECONDS``, stops it anywhere; its newest checkpoint is then an earlier one.
    After the last step only an evaluation is stopped; the results are written, if they take no longer than that.
    Once a run ends, for whatever reason, a signal interrupts nothing but waiting.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.caught: int | None = None
        self.deadline = 0.0  # by the monotonic clock
        self.training: Trainer | None = None
        self.finishing = self.ending = self.waiting = False

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Handle signals while a command runs, and restore the former handlers afterwards."""
        await_retry()
        old_handlers = {number: signal.getsignal(number) for number in (*_HANDLED_SIGNALS, signal.SIGALRM)}
        self._reset()
        try:
            self.install_handlers()
            with retry_swallowed(SignalInterrupt, self._raise_if_due):
                yield
        finally:
            self.begin_end()
            for number, handler in old_handlers.items():
                signal.signal(number, handler)

    def begin_end(self) -> None:
        """Let signals interrupt nothing from now on but what waits inside :meth:`allow_interrupts`."""
        if not self.ending:
            self.ending, self.caught = True, None
        self.stop_timer()

    @contextmanager
    def allow_interrupts(self) -> Iterator[None]:
        """Let a signal end a wait, also one that came since the end began.

        Raises:
            SignalInterrupt: it came.

        """
        self.waiting = True
        try:
            if self.caught is not None:
                raise SignalInterrupt(self.caught)
            yield
        finally:
            self.waiting = False

    def install_handlers(self) -> None:
        """Install the handlers, except for signals that the process was told to ignore (``nohup``)."""
        for number in _HANDLED_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        signal.signal(signal.SIGALRM, self._raise_if_due)

    def stop_timer(self) -> None:
        """Stop the timer; the remaining work has time limits of its own."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.ending:
            self.caught, self.deadline = number, time.monotonic()
            if not self.waiting:
                return
        elif self.caught is None:
            self.caught, self.deadline = number, time.monotonic() + GRACE_SECONDS
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
            if not self._at_once:
                return
        else:
            self.deadline = time.monotonic()
        raise SignalInterrupt(number)

    def _raise_if_due(self, *_: object) -> None:
        """Raise the signal that was caught, now if no update is half done, or else when its time is over."""
        if self.caught is None or (self.ending and not self.waiting):
            return
        remainder = self.deadline - time.monotonic()
        if self._at_once or remainder <= 0:
            raise SignalInterrupt(self.caught)
        signal.setitimer(signal.ITIMER_REAL, remainder)

    @property
    def _at_once(self) -> bool:
        """Whether no update is half done; several processes have to agree first."""
        if has_other_processes():
            return False
        if self.training is None:
            return True
        phase = _find_module(self.training).state.phase
        return phase.is_interruptible and not (self.finishing and phase is Phase.BETWEEN_STEPS)


class GracefulStop(Callback):
    """Stop a run on a signal, with a checkpoint of its last complete step.

    Args:
        signals: Handler of the signals that ask the run to stop.
        checkpoints: Callback that writes the run's checkpoints.

    """

    def __init__(self, signals: SignalHandler, checkpoints: Checkpoints) -> None:
        self.signals, self.checkpoints = signals, checkpoints
        self.agreed = False

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Register to check for signals between any two steps."""
        if stage == "fit":
            cast("PolicyModule", pl_module).between_steps.append(lambda: self._stop_if_asked(trainer))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reinstall the handlers, since Lightning's handler of SIGTERM ends a run with status 0."""
        self.signals.training = trainer
        self.signals.install_handlers()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reinstall the handlers also for the evaluation before training."""
        self.signals.install_handlers()

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Stop between two batches of questions; processes may have different numbers of them."""
        if self.signals.caught is not None and not has_other_processes():
            raise SignalInterrupt(self.signals.caught)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let signals wait while the last checkpoint and the results are written."""
        self.signals.finishing = True
        _find_module(trainer).state.phase = Phase.SAVING

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Save the last complete step, and whether its evaluation is pending."""
        has_half_rollout = trainer.global_step % cast("PolicyModule", pl_module).updates_per_rollout
        # One of several processes cannot save without the others.
        lacks_agreement = has_other_processes() and not self.agreed
        is_whole = cast("PolicyModule", pl_module).state.phase.is_interruptible and not has_half_rollout
        if isinstance(exception, SignalInterrupt | EngineUnavailable) and is_whole and not lacks_agreement:
            self.signals.stop_timer()  # a checkpoint that has been begun is finished
            self.checkpoints.save_once(trainer)

    def _stop_if_asked(self, trainer: Trainer) -> None:
        if trainer.global_step % _find_module(trainer).updates_per_rollout:
            return
        signal_number = torch.tensor(self.signals.caught or 0, device=trainer.strategy.root_device)
        if sum_over_processes(signal_number):  # by any process
            self.agreed = True
            _find_module(trainer).state.phase = Phase.BETWEEN_STEPS
            raise SignalInterrupt(self.signals.caught or signal.SIGTERM)


def _find_module(trainer: Trainer) -> PolicyModule:
    return cast("PolicyModule", trainer.lightning_module)
