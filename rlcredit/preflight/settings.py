"""Settings that the classes which get them would refuse without saying under which key they stand."""

import difflib
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.accelerators import AcceleratorRegistry
from lightning.pytorch.strategies import StrategyRegistry

from rlcredit.decoding.sampling import Sampling

GPUS = ("cuda", "mps")
"""What Lightning's ``gpu`` may mean."""

CHOICES = ("auto", "gpu")
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
    _refuse_absent_accelerator(trainer.accelerator)
    _refuse_unknown_strategy(trainer.strategy)
    if str(trainer.devices) in ("0", "[]", ""):
        shown = repr(str(trainer.devices))
        raise ValueError(f"trainer.devices: expected a number from 1 on, or auto, got {shown}. One is enough: say 1.")


def _refuse_absent_accelerator(named: Any) -> None:
    if not isinstance(named, str) or named == "auto":
        return
    known = AcceleratorRegistry.available_accelerators()
    here = [name for name in known if _is_available(name)]
    if named not in (*CHOICES, *known):
        close = difflib.get_close_matches(named, [*CHOICES, *known], n=1)
        meant = f" Did you mean `{close[0]}`?" if close else ""
        names = ", ".join(sorted({*CHOICES, *known}))
        raise ValueError(f"trainer.accelerator: no accelerator `{named:.40}`.{meant} There are {names}.")
    if not any(name in here for name in (GPUS if named == "gpu" else (named,))):
        raise ValueError(
            f"trainer.accelerator: expected one of this machine, got {named!r}. PyTorch finds {' and '.join(here)} "
            "here. Say auto, or install PyTorch for that device."
        )


def _is_available(name: str) -> bool:
    """Whether this machine has an accelerator; one whose package is not installed it has not."""
    try:
        return AcceleratorRegistry[name]["accelerator"].is_available()
    except ModuleNotFoundError:
        return False


def _refuse_unknown_strategy(named: Any) -> None:
    known = ["auto", *StrategyRegistry.available_strategies()]
    if isinstance(named, str) and named not in known:
        close = difflib.get_close_matches(named, known, n=1)
        meant = close[0] if close else "auto"
        raise ValueError(f"trainer.strategy: no strategy `{named:.40}`. Did you mean `{meant}`? One device needs none.")
