"""torchmetrics with two classes at first, and with all its metrics once anything else is asked of it.

Importing torchmetrics imports every metric there is, and for them models of transformers, scipy.signal and scipy.stats:
two seconds of a processor. Lightning and rlcredit use two classes, which need none of that.
"""

import importlib
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from logging import getLogger
from types import ModuleType
from typing import Any

_PACKAGE_NAME = "torchmetrics"
FIRST_NAMES = {
    "__version__": "torchmetrics.__about__",
    "Metric": "torchmetrics.metric",
    "MetricCollection": "torchmetrics.collections",
}
"""Module of each name that is there at first."""

FIRST_MODULE = "torchmetrics.utilities"
"""Module that is imported before those of the classes, because it and ``torchmetrics.metric`` import each other."""


def defer_torchmetrics() -> None:
    """Have the next ``import torchmetrics`` of this process give two classes, and the rest when it is asked for.

    A module of torchmetrics can be imported by its path as ever. What the package changes in other libraries when it is
    executed, such as adding ``numpy.Inf``, happens when it is.
    """
    if _TorchmetricsFinder not in sys.meta_path:
        sys.meta_path.insert(0, _TorchmetricsFinder)  # pyright: ignore[reportArgumentType]


class _TorchmetricsFinder:
    """Find torchmetrics where it is installed, and defer it; a finder as Python wants one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the place of torchmetrics; None for every other name."""
        spec = PathFinder.find_spec(name, path) if name == _PACKAGE_NAME else None
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


class _DeferringLoader(Loader):
    """Import two classes in place of the package; the package itself if it does not give them that way.

    Args:
        loader: Loader of the package.

    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its two classes."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        try:
            vars(module)["_logger"] = getLogger(_PACKAGE_NAME)  # its modules import it from the package
            importlib.import_module(FIRST_MODULE)
            vars(module).update(
                {name: getattr(importlib.import_module(position), name) for name, position in FIRST_NAMES.items()}
            )
        except (ImportError, AttributeError):  # another version, whose modules need more of the package
            self.loader.exec_module(module)
        else:
            module.__class__ = _DeferredPackage


class _DeferredPackage(ModuleType):
    """The package before it is executed, which happens when it is asked for a name that it does not have yet."""

    _lock = threading.RLock()
    _is_executing = False

    def __getattr__(self, name: str) -> Any:
        with _DeferredPackage._lock:
            if type(self) is _DeferredPackage and not _DeferredPackage._is_executing:
                self._execute()
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> Sequence[str]:
        return [*self.__all__, *vars(self)]

    def _execute(self) -> None:
        _DeferredPackage._is_executing = True
        try:
            self.__loader__.exec_module(self)  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
            self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
        finally:
            _DeferredPackage._is_executing = False
