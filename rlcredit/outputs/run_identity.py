"""The identity of a run: tags, parameters, and the link between a checkpoint and the record before it."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.base.lightning_private import read_callbacks
from rlcredit.credit.contract import select_operators
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.record import RunRecord
from rlcredit.record.artifacts import write_waiting_texts
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

MOST = 300
"""Parameters of a run; its whole configuration is an artifact."""

OPTIMIZER = frozenset(["lr", "betas", "eps", "weight_decay", "momentum"])
"""Of an optimizer's settings, those that are not about how it is computed."""


def collect_flat_parameters(trainer: Trainer, module: PolicyModule, task: Task) -> dict[str, Any]:
    """Return numbers, words and short lists by dotted names, such as ``optimizer.lr``, ``GTPO.beta`` and ``task.name``.

    A second operator of one class is ``GTPO_2``, as in metrics.

    Args:
        trainer: Trainer with the stack.
        module: Module with policy, sampling, loss and optimizer.
        task: Task with the questions.

    """
    optimizer = module.optimizer([torch.nn.Parameter(torch.zeros(1))])
    named: dict[str, Any] = {
        "policy": module.policy,
        "sampling": module.sampling,
        "validation": module.validation,
        "loss": module.loss,
        "task": task,
    }
    counts: dict[str, int] = {}
    for operator in select_operators(read_callbacks(trainer)):
        label = type(operator).__name__
        counts[label] = counts.get(label, 0) + 1
        named[label if counts[label] == 1 else f"{label}_{counts[label]}"] = operator
    flat = {
        "optimizer.class": type(optimizer).__name__,
        "scheduler.class": type(module.scheduler(optimizer)).__name__ if module.scheduler else None,
        "trainer.max_steps": trainer.max_steps,
        "trainer.precision": trainer.precision,
        "trainer.gradient_clip_val": trainer.gradient_clip_val,
        "updates_per_rollout": module.updates_per_rollout,
        "minibatches": module.minibatches,
    }
    for name in sorted(OPTIMIZER & optimizer.defaults.keys()):
        flat |= dict(_flatten_value(f"optimizer.{name}", optimizer.defaults[name]))
    for prefix, thing in named.items():
        flat |= dict(_flatten_arguments(prefix, thing))
    return dict(list(flat.items())[:MOST])


def _flatten_arguments(prefix: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield an object's arguments, as far as they are stored under their own names, and those of objects inside it."""
    if prefix in ("loss", "task") or "." in prefix:
        yield f"{prefix}.class", type(thing).__name__
    inits = [cls.__init__ for cls in type(thing).__mro__ if "__init__" in vars(cls) and cls.__module__ != "builtins"]
    for name in dict.fromkeys(name for init in inits for name in inspect.signature(init).parameters):
        if hasattr(thing, name):
            yield from _flatten_value(f"{prefix}.{name}", getattr(thing, name))


def _flatten_value(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value is None or isinstance(value, str | int | float | bool):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten_value(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        yield name, ", ".join(map(str, value))
    elif type(value).__module__.startswith(("rlcredit.", "callbacks.")):
        yield from _flatten_arguments(name, value)


def make_run_tags(condition: str, seed: int) -> dict[str, str]:
    """Return the tags that identify a run beside its parameters."""
    return {"condition": condition, "seed": str(seed), **read_code_versions()}


class RunIdentity(Callback):
    """Link checkpoints to the run and to the length of its record, so that a continued run continues both.

    Args:
        name: Name of the run.

    Attributes:
        record: Record of the run, once it has been opened.
        parameters: Parameters shown beside the run; the full configuration is an artifact.
        flat: Further parameters, by which runs can be sorted; see :func:`collect_flat_parameters`.

    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.record: RunRecord | None = None
        self.parameters: dict[str, Any] = {}
        self.flat: dict[str, Any] = {}

    @rank_zero_only
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record the parameters."""
        if self.record is not None and self.record.fresh:
            self.record.log_hyperparams({**self.flat, **self.parameters})

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Store name, parameters and length of the record in the checkpoint.

        Raises:
            StorageUnavailable: the disk does not take the record, or a file that is still to be written.

        """
        checkpoint["run_name"], checkpoint["parameters"] = self.name, self.parameters
        if waiting := write_waiting_texts():
            raise StorageUnavailable(
                f"{waiting[0]} cannot be written. Training stops here: no checkpoint would hold without it."
            )
        try:
            checkpoint["record"] = self.record.sync() if self.record is not None else None
        except OSError as error:
            raise StorageUnavailable(f"{error} Training stops here: no checkpoint would hold without it.") from error
