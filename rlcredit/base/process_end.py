"""Code of somebody's own that ends the process: an exception, where it would be an end without a word."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

end_process = os._exit
"""End this process at once, also where :func:`catch_process_end` is at work."""

STOPPING_ERRORS = (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration)
"""Exceptions that end a process, or a loop of Lightning's, without a word."""


@contextmanager
def catch_process_end() -> Iterator[None]:
    """Have ``os._exit`` raise :class:`SystemExit` meanwhile, as ``sys.exit`` does; forks of this process still end."""
    former, process = os._exit, os.getpid()

    def raise_exit(status: int) -> NoReturn:
        if os.getpid() != process:
            former(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = raise_exit
    try:
        yield
    finally:
        os._exit = former
