"""The policy: a causal language model with a LoRA adapter, its prompts, weights and sizes."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a class that configurations name by the room; its module is imported when it is asked for."""
    if name not in ("LoRA", "Policy"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlcredit.policy import policy  # noqa: PLC0415

    return getattr(policy, name)
