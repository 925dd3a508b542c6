"""Imports without the garbage collector, which would go through all that was imported again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def freeze_imports() -> Iterator[None]:
    """Import modules without looking for garbage, and never look for any among what they have made.

    Modules live as long as the process. A collection amid imports, or at the end of the process, goes through hundreds
    of thousands of their functions and classes, and finds a few megabytes.

    Example:
        >>> with freeze_imports():
        ...     import decimal
        >>> gc.isenabled()
        True

    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
