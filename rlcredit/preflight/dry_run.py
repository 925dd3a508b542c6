"""Checks that a configuration can run at all: optimizer, schedule and memory."""

import re
import sys

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from rlcredit.config.error_messages import describe_exception, find_root_cause
from rlcredit.policy.memory import FORECAST_ERROR, PassSize, estimate_update_cost, read_machine_memory
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight.memory import MemoryEstimate, find_pass_obstacle, format_bytes
from rlcredit.tasks.task import Task
from rlcredit.training.micro_batches import Part
from rlcredit.training.module import PolicyModule

REFUSAL_TYPES = (
    *(ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError, AssertionError),
    *(ImportError, OSError, MisconfigurationException),
)
"""What constructors raise, ours and others', when they are given values that they cannot use."""

BATCH_TOKEN_BYTES = 29
"""Bytes that every token of a batch takes: number, noise, mask and three statistics."""

MAX_TRIED_STEPS = 1000
"""Steps of a schedule that are tried, at most."""


def explain_refusal(error: Exception) -> str:
    """Return the message of an error; an error of an unexpected type is given with its location.

    Example:
        >>> explain_refusal(ValueError("limit must be positive.")), explain_refusal(KeyError("x"))
        ('limit must be positive.', "KeyError: 'x'")

    """
    message_types = (ValueError, OSError, MisconfigurationException)
    cause = find_root_cause(error)
    match = re.search(r"Problem with given class_path '([\w.]+)'", str(error))  # by a parser that makes objects
    if match and not isinstance(cause, message_types):
        return f"`{match[1]}` raises {describe_exception(cause)}."
    return str(error) if isinstance(error, message_types) else describe_exception(cause)


def refuse_impossible_run(trainer: Trainer, module: PolicyModule, task: Task) -> None:
    """Refuse an optimizer that cannot step, and batches that memory cannot hold.

    Args:
        trainer: Trainer that has not begun.
        module: Module; it is not loaded.
        task: Task; it is not loaded.

    Raises:
        ValueError: with the place and the repair.

    """
    _refuse_failing_optimizer(trainer, module)
    rows = {
        "sampling": task.prompts_per_step * module.rounds * module.sampling.completions,
        "validation": max(
            min(held_out_set.task.validation_batch, held_out_set.size or sys.maxsize)
            * held_out_set.choose_sampling(module.validation).completions
            for held_out_set in task.held_out_sets
        ),
    }
    memory = read_machine_memory()
    for name, number in rows.items():
        size = number * getattr(module, name).max_tokens * BATCH_TOKEN_BYTES
        if size > memory:
            raise ValueError(
                f"model.{name}.max_tokens: {number:,} completions of {getattr(module, name).max_tokens:,} tokens take "
                f"{size / 2**30:,.0f} GiB before any model runs; this machine has {memory / 2**30:,.0f}. "
                "Lower it, the completions, or the prompts."
            )


def refuse_large_row(trainer: Trainer, module: PolicyModule, estimate: MemoryEstimate) -> None:
    """Refuse completions of which not even one fits into the update, however short its prompt and rough the forecast.

    Raises:
        ValueError: with what a completion takes, what there is, and the repair.

    """
    policy, tokens, way = module.policy, module.sampling.max_tokens, estimate.way
    sizes = find_policy_sizes(policy.location)
    if sizes is None or sizes.architecture is None:
        return
    is_packed, is_mixed = find_pass_obstacle(trainer, module) is None, "mixed" in str(trainer.precision)
    row = PassSize(1, 0, 1, tokens)
    cost = estimate_update_cost(sizes.architecture, policy.dtype, row, is_packed=is_packed, is_mixed=is_mixed)
    part = Part(tokens, cost.layers, is_recomputed=True)
    size = (1 - FORECAST_ERROR) * part.forecast_bytes(cost, tokens)
    if way.least + size > way.room:
        fewer = f", hold the weights in fewer bits or in parts ({' or '.join(estimate.repairs)})"
        raise ValueError(
            f"model.sampling.max_tokens: the update of one completion of {tokens:,} tokens takes at least "
            f"{format_bytes(size)} beside {format_bytes(way.least)} of weights, adapter and libraries, and {way.owner} "
            f"has {format_bytes(way.room)}. Lower it{fewer if estimate.repairs else ''}, or use a larger machine."
        )


def _refuse_failing_optimizer(trainer: Trainer, module: PolicyModule) -> None:
    """Let the optimizer and its schedule take steps on a single weight."""
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    device = trainer.strategy.root_device.type
    key = "model.optimizer"
    try:
        optimizer = module.optimizer([weight])
        key = "model.scheduler"
        scheduler = module.scheduler(optimizer) if module.scheduler else None
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                "ReduceLROnPlateau needs a metric and rlcredit steps schedulers without one. "
                "Use LinearLR or CosineAnnealingLR."
            )
        for _ in range(min(max(trainer.max_steps, 1), MAX_TRIED_STEPS) if device == "cpu" else 0):
            key = "model.optimizer"
            optimizer.step(lambda: 0.0)
            key = "model.scheduler"
            if scheduler:
                scheduler.step()
    except REFUSAL_TYPES as error:
        raise ValueError(f"{key}: {explain_refusal(error)}") from None  # the key is part of what is said
