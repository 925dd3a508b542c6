"""What a run is made with as flat parameters, so that runs can be sorted and filtered by a number."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from lightning.pytorch import Trainer

from callbacks.contract import select_operators
from rlcredit.module import PolicyModule
from rlcredit.tasks.base import Task

MOST = 300
"""Parameters of a run; its whole configuration is an artifact."""

OPTIMIZER = frozenset(["lr", "betas", "eps", "weight_decay", "momentum"])
"""Of an optimizer's settings, those that are not about how it is computed."""


def collect_flat_parameters(trainer: Trainer, module: PolicyModule, task: Task) -> dict[str, Any]:
    """Return numbers, words and short lists by dotted names, as ``optimizer.lr``, ``GTPO.beta`` and ``task.name``.

    A second operator of one class is ``GTPO_2``, as in metrics.

    Args:
        trainer: with the stack.
        module: with policy, sampling, loss and optimizer.
        task: with the questions.

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
    for operator in select_operators(trainer.callbacks):  # pyright: ignore[reportAttributeAccessIssue]
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
    """Yield what an object was made with, as far as it is kept under its own name, and what objects inside it were."""
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
