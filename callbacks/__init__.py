"""Credit as callbacks, in the order of a stack: episode or dense, planning, schedules, signals, tokens, probes.

``from callbacks import GRPO`` imports that operator alone; :func:`import_operators` imports every one of them.
"""

import functools
import importlib
import pkgutil
from typing import Any

from callbacks.base import CreditOperator
from callbacks.contract import StackError, StackWarning
from callbacks.lints import check_stack


def import_operators(probes: bool = True) -> None:
    """Import every operator, so that a configuration can say ``- GRPO``.

    Args:
        probes: those of the room of probes too, which need Lightning.

    """
    for module in _list_operator_modules():
        if probes or not module.startswith(f"{__name__}.probes."):
            importlib.import_module(module)


@functools.cache
def _list_operator_modules() -> list[str]:
    """Return the modules of all rooms; every class of a configuration asks for them."""
    rooms = [room.name for room in pkgutil.iter_modules(__path__) if room.ispkg]
    return [
        f"{__name__}.{room}.{module.name}"
        for room in rooms
        for module in pkgutil.iter_modules([f"{folder}/{room}" for folder in __path__])
    ]


def __getattr__(name: str) -> Any:
    """Import the operator of this name; its module is called like it, in lower case and with underscores."""
    for module in _list_operator_modules() if name[:1].isupper() else ():
        if module.rpartition(".")[2].replace("_", "") == name.lower():
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_operator_classes() -> list[type[CreditOperator]]:
    """Return all operator classes of this package, by name."""
    import_operators()
    classes, queue = [], CreditOperator.__subclasses__()
    while queue:
        cls = queue.pop()
        queue.extend(cls.__subclasses__())
        if cls.__module__.startswith(f"{__name__}."):
            classes.append(cls)
    return sorted(classes, key=lambda cls: cls.__name__)


__all__ = ["CreditOperator", "StackError", "StackWarning", "check_stack", "find_operator_classes"]
