"""Loggers that are created last, because an MLflow logger creates its store, which a refused run must not."""

from collections.abc import Iterable
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from lightning.pytorch.loggers import Logger


def defer_loggers(configured: Any) -> tuple[Any, Any]:
    """Return the loggers to create later, and those that a trainer gets in the meantime.

    Example:
        >>> defer_loggers(False), defer_loggers(None)
        ((None, False), (None, None))

    """
    entries = configured if isinstance(configured, list) else [configured]
    later = any(isinstance(entry, Namespace) for entry in entries)
    return (configured, False) if later else (None, configured)


def instantiate_loggers(configured: Any) -> list[Logger]:
    """Create the loggers that a configuration describes.

    Args:
        configured: Logger, or a list of loggers, parsed and not instantiated.

    """
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--loggers", type=Iterable[Logger])
    entries = configured if isinstance(configured, list) else [configured]
    return vars(parser.instantiate_classes(Namespace(loggers=entries)))["loggers"]
