"""Launches: what an accelerator was told to compute, and on a CPU the operations that would be launches there."""

from collections import Counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

FREE_OPERATIONS = frozenset(
    f"aten::{name}"
    for name in (
        *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "resize_", "set_"),
        *("detach", "alias", "lift_fresh", "_unsafe_view", "is_same_size", "split_with_sizes", "_local_scalar_dense"),
    )
)
"""Operations that are no views by their schema and compute nothing."""

LAUNCH_CALLS = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch")
"""How the calls of a driver begin that have an accelerator compute."""


class OperationCounter(TorchDispatchMode):
    """Count operations that are no views, by name.

    Attributes:
        counts: How often each was called.

    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operation and count it."""
        name = func._schema.name
        if not func.is_view and name not in FREE_OPERATIONS:
            self.counts[name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


def make_launch_counter() -> OperationCounter | profile:
    """Return a context that counts launches, for :func:`read_launches`; where there is no accelerator, operations."""
    return profile(activities=[ProfilerActivity.CUDA]) if torch.cuda.is_available() else OperationCounter()


def read_launches(counter: Any) -> int:
    """Return the launches inside a context that has been left."""
    if isinstance(counter, OperationCounter):
        return counter.counts.total()
    # Events of the profiler itself: as Python objects, hundreds of thousands take minutes.
    return sum(event.name().startswith(LAUNCH_CALLS) for event in counter.profiler.kineto_results.events())
