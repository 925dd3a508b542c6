"""Faults at named phases of a run, for tests; the training code itself is not changed.

python tests/batteries/inject_faults.py backward:kill:3 -- fit --config configs/tiny.yaml

runs the command and kills it when it enters its third backward pass. ``list`` instead of a fault lists the phases.
"""

import dataclasses
import errno
import inspect
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch.strategies.strategy as strategies
import torch

from rlcredit.base import files
from rlcredit.credit.operator import CreditOperator
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Samples
from rlcredit.outputs.adapter import SaveAdapter
from rlcredit.outputs.checkpoints import Checkpoints, DurableCheckpoints
from rlcredit.outputs.held_out import HeldOutVerdicts
from rlcredit.outputs.learning_curve import LearningCurve
from rlcredit.record import artifacts
from rlcredit.record.journal import Journal
from rlcredit.record.logger import RunRecord
from rlcredit.record.mlflow_run import MLflowRun
from rlcredit.tasks.reasoning_gym import ReasoningGym
from rlcredit.training.module import PolicyModule

PHASES: dict[str, tuple[Any, str]] = {
    "decode": (InProcessEngine, "decode"),
    "verify": (ReasoningGym, "judge"),
    "credit": (CreditOperator, "assign_checked"),
    "forward": (PolicyModule, "training_step"),
    "backward": (strategies.Strategy, "backward"),
    "optimizer": (torch.optim.AdamW, "step"),
    "step_end": (PolicyModule, "on_train_batch_end"),
    "log": (RunRecord, "log_metrics"),
    "record": (Journal, "_write"),
    "table": (artifacts, "_write_or_defer"),
    "question": (PolicyModule, "validation_step"),
    "held_out": (HeldOutVerdicts, "on_validation_end"),
    "checkpoint": (DurableCheckpoints, "save_checkpoint"),
    "checkpoint_written": (torch, "save"),
    "replaced": (files.os, "replace"),
    "checkpoint_named": (Checkpoints, "_link_checkpoint"),
    "checkpoint_removed": (DurableCheckpoints, "remove_checkpoint"),
    "deliver": (MLflowRun, "add_metrics"),
    "upload": (MLflowRun, "upload_file"),
    "curve": (LearningCurve, "on_fit_end"),
    "adapter": (SaveAdapter, "on_fit_end"),
    "close": (RunRecord, "close"),
}
"""Each phase by the function whose call begins it."""


def _kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise_requested_error() -> None:
    raise RuntimeError("a fault that was asked for")


def _raise_disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _make_signal_sender(name: str) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), signal.Signals[name])


class _SignalInFinalizer:
    """Sends SIGINT when it is no longer needed, where Python cannot raise what the handler raises."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def _turn_into_nan(result: Any) -> Any:
    """Turn a tensor, or the log-probabilities of samples, into NaN; leave anything else as it is."""
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        return result * torch.nan
    if isinstance(result, Samples):
        result.logprobs = result.logprobs * torch.nan
    return result


ACTIONS: dict[str, Callable[[], object]] = {
    "kill": _kill_process,
    "raise": _raise_requested_error,
    "full": _raise_disk_full,
    "hang": lambda: time.sleep(10**6),
    "slow": lambda: time.sleep(1.0),
    "nan": lambda: None,
    "finalizer": _SignalInFinalizer,
    **{name: _make_signal_sender(name) for name in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP")},
}


@dataclasses.dataclass(frozen=True)
class InjectedFault:
    """Something that happens when a phase begins.

    Args:
        phase: Phase in which it happens, one of ``PHASES``.
        action: Action that happens, one of ``ACTIONS``.
        call: Call of the phase in this process at which it happens, counted from one.

    """

    phase: str
    action: str
    call: int

    @classmethod
    def written(cls, text: str) -> "InjectedFault":
        """Read ``phase:action:call``."""
        phase, action, call = text.split(":")
        return cls(phase, action, int(call))

    def install(self, note: Path | None = None) -> None:
        """Wrap the function of the phase in this process; ``note`` is a file made when the fault happens."""
        calls = 0

        def faulty(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls != self.call:
                return function(*arguments, **keywords)
            if note is not None:
                note.touch()
            if self.action == "nan":
                return _turn_into_nan(function(*arguments, **keywords))
            ACTIONS[self.action]()
            return function(*arguments, **keywords)

        _wrap_phase(self.phase, faulty)


def count_phase_calls() -> Counter[str]:
    """Return a counter of the calls of each phase in this process, from now on."""
    calls: Counter[str] = Counter()
    for phase in PHASES:

        def counting(function: Callable[..., Any], *arguments: Any, phase: str = phase, **keywords: Any) -> Any:
            calls[phase] += 1
            return function(*arguments, **keywords)

        _wrap_phase(phase, counting)
    return calls


def _wrap_phase(phase: str, around: Callable[..., Any]) -> None:
    """Replace the function of a phase: call ``around`` with that function and its arguments."""
    owner, name = PHASES[phase]
    attribute, function = inspect.getattr_static(owner, name), getattr(owner, name)

    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        return around(function, *arguments, **keywords)

    setattr(owner, name, staticmethod(wrapped) if isinstance(attribute, staticmethod) else wrapped)


def main(words: list[str]) -> None:
    """Run a command with a fault in it."""
    if words[:1] == ["list"]:
        print(f"phases: {', '.join(PHASES)}\nactions: {', '.join(ACTIONS)}")
        return
    from rlcredit.cli.application import run_lightning_command as command

    InjectedFault.written(words[0]).install()
    sys.argv = ["rlcredit", *words[words.index("--") + 1 :]]
    command()


if __name__ == "__main__":
    main(sys.argv[1:])
