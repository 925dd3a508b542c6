"""Settings that the classes which get them would refuse without saying under which key they stand."""

from typing import Any

import torch
from jsonargparse import Namespace
from lightning.pytorch.accelerators import AcceleratorRegistry
from lightning.pytorch.strategies import StrategyRegistry

from rlcredit.base.messages import suggest_name
from rlcredit.decoding.sampling import Sampling

RATE_KEY = "model.optimizer.init_args.lr"
"""Key of the learning rate."""

GPU_NAMES = ("cuda", "mps")
"""What Lightning's ``gpu`` may mean."""

ACCELERATOR_CHOICES = ("auto", "gpu")
"""Names of accelerators that stand for one of several."""


def refuse_unusable_settings(config: Namespace) -> None:
    """Refuse numbers, accelerators and strategies with which no run could start.

    Args:
        config: Configuration, parsed, nothing of it instantiated.

    Raises:
        ValueError: with the key, the value and the repair.

    """
    trainer = config.trainer
    if (steps := trainer.max_steps) < -1:
        raise ValueError(f"trainer.max_steps: expected a number of steps, or -1 for no limit, got {steps}. Say 100.")
    for key in ("sampling", "validation"):
        if isinstance(settings := config.model.get(key), Namespace):
            try:
                Sampling(**settings.as_dict())
            except ValueError as error:
                raise ValueError(f"model.{key}.{error}") from None
    if (rate := find_learning_rate(config)) is not None and rate < 0:
        raise ValueError(f"{RATE_KEY}: expected a number above 0, got {rate:g}. 1.0e-4 is usual with LoRA.")
    _refuse_absent_accelerator(trainer.accelerator)
    _refuse_missing_bfloat16(config)
    _refuse_unknown_strategy(trainer.strategy)
    if str(trainer.devices) in ("0", "[]", ""):
        text = repr(str(trainer.devices))
        raise ValueError(f"trainer.devices: expected a number from 1 on, or auto, got {text}. One is enough: say 1.")


def find_learning_rate(config: Namespace) -> float | None:
    """Return the learning rate of a configuration; None where its optimizer has none."""
    rate = config.get(RATE_KEY)
    return rate if isinstance(rate, (int, float)) else None


def _refuse_absent_accelerator(accelerator: Any) -> None:
    if not isinstance(accelerator, str) or accelerator == "auto":
        return
    all_names = AcceleratorRegistry.available_accelerators()
    local_names = [name for name in all_names if _is_available(name)]
    if accelerator not in (*ACCELERATOR_CHOICES, *all_names):
        suggestion = suggest_name(accelerator, [*ACCELERATOR_CHOICES, *all_names])
        names = ", ".join(sorted({*ACCELERATOR_CHOICES, *all_names}))
        raise ValueError(f"trainer.accelerator: no accelerator `{accelerator:.40}`.{suggestion} There are {names}.")
    if not any(name in local_names for name in (GPU_NAMES if accelerator == "gpu" else (accelerator,))):
        raise ValueError(
            f"trainer.accelerator: expected one of this machine, got {accelerator!r}. PyTorch finds "
            f"{' and '.join(local_names)} here. Say auto, or install PyTorch for that device."
        )


def _refuse_missing_bfloat16(config: Namespace) -> None:
    """Refuse a precision for which the card that will be used has no products."""
    if config.trainer.accelerator not in ("cuda", *ACCELERATOR_CHOICES) or not torch.cuda.is_available():
        return
    capability = torch.cuda.get_device_capability()
    settings = [
        ("trainer.precision", str(config.trainer.precision), "16-mixed"),
        ("model.policy.dtype", str(config.get("model.policy.init_args.dtype")), "float16"),
    ]
    faults = [setting for setting in settings if setting[1].startswith(("bf16", "bfloat16"))]
    if faults and capability < (8, 0):
        values, repairs = (", ".join(f"{setting[0]}: {setting[place]}" for setting in faults) for place in (1, 2))
        raise ValueError(
            f"{faults[0][0]}: bfloat16 needs a card of compute capability 8.0 or more, and the "
            f"{torch.cuda.get_device_name()} has {capability[0]}.{capability[1]} ({values}). Set {repairs}."
        )


def _is_available(name: str) -> bool:
    """Whether this machine has an accelerator; one whose package is not installed it has not."""
    try:
        return AcceleratorRegistry[name]["accelerator"].is_available()
    except ModuleNotFoundError:
        return False


def _refuse_unknown_strategy(strategy: Any) -> None:
    names = ["auto", *StrategyRegistry.available_strategies()]
    if isinstance(strategy, str) and strategy not in names:
        suggestion = suggest_name(strategy, names) or " Did you mean `auto`?"
        raise ValueError(f"trainer.strategy: no strategy `{strategy:.40}`.{suggestion} One device needs none.")
