"""Loggers that are created last, because an MLflow logger creates its store, which a refused run must not."""

from collections.abc import Iterable
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from lightning.pytorch.loggers import Logger


def defer_loggers(loggers: Any) -> tuple[Any, Any]:
    """Return the loggers to create later, and those that a trainer gets in the meantime.

    Example:
        >>> defer_loggers(False), defer_loggers(None)
        ((None, False), (None, None))

    """
    entries = loggers if isinstance(loggers, list) else [loggers]
    is_deferred = any(isinstance(entry, Namespace) for entry in entries)
    return (loggers, False) if is_deferred else (None, loggers)


def instantiate_loggers(configuration: Any) -> list[Logger]:
    """Create the loggers that a configuration describes.

    Args:
        configuration: Logger, or a list of loggers, parsed and not instantiated.

    """
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--loggers", type=Iterable[Logger])
    entries = configuration if isinstance(configuration, list) else [configuration]
    return vars(parser.instantiate_classes(Namespace(loggers=entries)))["loggers"]
