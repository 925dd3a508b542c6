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
from rlcredit.episodes.environment import Environment
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.record import RunRecord
from rlcredit.record.artifacts import write_waiting_texts
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

MAX_PARAMETERS = 300
"""Parameters of a run; its whole configuration is an artifact."""

REPEATED_PARAMETERS = frozenset(
    [
        *("sampling.completions", "sampling.max_tokens", "sampling.temperature"),
        *("task.prompts_per_step", "task.seed", "trainer.max_steps", "updates_per_rollout", "minibatches"),
    ]
)
"""Parameters that a run shows under a shorter name, or among its tags."""


def collect_flat_parameters(trainer: Trainer, module: PolicyModule, task: Task) -> dict[str, Any]:
    """Return the parameters that distinguish a run, by dotted names such as ``optimizer.lr`` and ``task.name``.

    These are numbers, words and short lists: all arguments of operators and of the loss, and of everything else those
    that differ from their defaults; the whole configuration is an artifact. A second operator of one class is
    ``GTPO_2``, as in metrics.

    Args:
        trainer: Trainer with the stack.
        module: Module with policy, sampling, loss and optimizer.
        task: Task with the questions.

    """
    optimizer = module.optimizer([torch.nn.Parameter(torch.zeros(1))])
    settings = {name: optimizer.defaults.get(name) for name in inspect.signature(type(optimizer)).parameters}
    objects: dict[str, Any] = {
        "policy": module.policy,
        "sampling": module.sampling,
        "validation": module.validation,
        "loss": module.loss,
        "task": task,
    }
    flat = {
        "optimizer.class": type(optimizer).__name__,
        **dict(_flatten_arguments("optimizer", optimizer, values=settings)),
        "optimizer.lr": optimizer.defaults["lr"],
        "scheduler.class": type(module.scheduler(optimizer)).__name__ if module.scheduler else None,
        "trainer.precision": None if trainer.precision == "32-true" else trainer.precision,
        "trainer.gradient_clip_val": trainer.gradient_clip_val,
    }
    for prefix, thing in objects.items():
        flat |= dict(_flatten_arguments(prefix, thing, defaults=prefix == "loss"))
    flat = {name: value for name, value in flat.items() if value not in (None, "") and name not in REPEATED_PARAMETERS}
    counts: dict[str, int] = {}
    for operator in select_operators(read_callbacks(trainer)):
        label = type(operator).__name__
        counts[label] = counts.get(label, 0) + 1
        label = label if counts[label] == 1 else f"{label}_{counts[label]}"
        flat |= dict(_flatten_arguments(label, operator, defaults=True))
    return dict(list(flat.items())[:MAX_PARAMETERS])


def _flatten_arguments(
    prefix: str, thing: Any, defaults: bool = False, values: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield an object's arguments, as far as they are stored under their own names, and those of objects inside it.

    Args:
        prefix: First part of the names.
        thing: Object with the arguments.
        defaults: Whether arguments at their defaults are yielded, too.
        values: What it stores, by name; its attributes if None.

    """
    if prefix in ("loss", "task") or ("." in prefix and not prefix.startswith("policy.")):
        yield f"{prefix}.class", type(thing).__name__
    inits = [cls.__init__ for cls in type(thing).__mro__ if "__init__" in vars(cls) and cls.__module__ != "builtins"]
    arguments = {
        name: parameter for init in reversed(inits) for name, parameter in inspect.signature(init).parameters.items()
    }
    values = {name: getattr(thing, name) for name in arguments if hasattr(thing, name)} if values is None else values
    for name, argument in arguments.items():
        if name in values and (defaults or not _is_default(values[name], argument.default)):
            yield from _flatten_value(f"{prefix}.{name}", values[name], defaults)


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument has its default; one that is made where the default is None counts if it is as made."""
    if value is None or isinstance(value, str | int | float | bool | list | tuple | Mapping):
        return type(value) is type(default) and value == default
    return default is None and not any(True for _ in _flatten_arguments("", value))


def _flatten_value(name: str, value: Any, defaults: bool) -> Iterator[tuple[str, Any]]:
    if value is None or isinstance(value, str | int | float | bool):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten_value(f"{name}.{key}", inner, defaults)
    elif isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        yield name, ", ".join(map(str, value))
    elif isinstance(value, Environment) or type(value).__module__.startswith(("rlcredit.", "callbacks.")):
        yield from _flatten_arguments(name, value, defaults)


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
