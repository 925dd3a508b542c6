"""Names that a package offers before it imports the modules that define them."""

import importlib
from collections.abc import Mapping
from typing import Any


def load_lazy_name(package: str, modules: Mapping[str, str], name: str) -> Any:
    """Import a name that a package offers; for its ``__getattr__``.

    Args:
        package: Name of the package, for the error.
        modules: Module that defines each name.
        name: Name that was asked for.

    Raises:
        AttributeError: the package gives no such name.

    Example:
        >>> load_lazy_name("numbers", {"gcd": "math"}, "gcd")(12, 18)
        6

    """
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(modules[name]), name)
