"""The policy: a causal language model with a LoRA adapter, its prompts, weights and sizes."""

from typing import Any

from rlcredit.config.former_names import load_former_name


def __getattr__(name: str) -> Any:
    """Return what a module of this name held before it became a package."""
    return load_former_name(f"{__name__}.{name}")
