"""The shipped operators: rlcredit finds them through this module and imports ``callbacks`` nowhere else."""

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlcredit.credit.contract import OperatorContract

if TYPE_CHECKING:
    from rlcredit.credit.operator import CreditOperator

OPERATOR_PACKAGE = "callbacks"
"""The package of operators and probes; its folders are the levels of a stack."""


@functools.cache
def list_operator_modules() -> tuple[str, ...]:
    """Return the modules of all folders of ``callbacks``, cached because every class path needs them."""
    package = importlib.import_module(OPERATOR_PACKAGE)
    levels = [folder.name for folder in pkgutil.iter_modules(package.__path__) if folder.ispkg]
    return tuple(
        f"{OPERATOR_PACKAGE}.{level}.{module.name}"
        for level in levels
        for module in pkgutil.iter_modules([f"{folder}/{level}" for folder in package.__path__])
    )


def import_operators(probes: bool = True) -> None:
    """Import every operator, so that a configuration can say ``- GRPO``.

    Args:
        probes: Whether to import probes too, which need Lightning.

    """
    for module in list_operator_modules():
        if probes or not module.startswith(f"{OPERATOR_PACKAGE}.probes."):
            importlib.import_module(module)


def load_operator(name: str) -> Any:
    """Import one operator or probe by the name of its class.

    Raises:
        AttributeError: no module of ``callbacks`` is called like it, in lower case and with underscores.

    """
    for module in list_operator_modules() if name[:1].isupper() else ():
        if module.rpartition(".")[2].replace("_", "") == name.lower():
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {OPERATOR_PACKAGE!r} has no attribute {name!r}")


def find_operator_classes() -> "list[type[CreditOperator]]":
    """Return all shipped classes of operators and probes, by name."""
    import_operators()
    operator_classes = [cls for cls in _walk_contracts() if cls.__module__.startswith(f"{OPERATOR_PACKAGE}.")]
    return sorted(operator_classes, key=lambda cls: cls.__name__)  # pyright: ignore[reportReturnType]


def find_usual_writer(name: str) -> type[OperatorContract] | None:
    """Return the usual writer of a field, or the one with the fewest needs; None if nothing writes it."""
    import_operators(probes=False)
    writers = [cls for cls in _walk_contracts() if name in cls.writes and name not in cls.reads]
    return min(writers, key=lambda cls: (not cls.usual, len(cls.reads)), default=None)


def _walk_contracts() -> Iterator[type[OperatorContract]]:
    """Yield every class with a contract, base classes first."""
    queue: list[type[OperatorContract]] = [OperatorContract]
    while queue:
        cls = queue.pop(0)
        queue.extend(cls.__subclasses__())
        yield cls
