"""Changes of what a rollout's fields hold: those that torch counts, and those through NumPy, ``.data`` or DLPack."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from rlcredit.credit.rollout import ROLLOUT_FIELDS

WATCHED_FIELDS = ROLLOUT_FIELDS | {"trail"}
"""Fields whose content an operator must leave as it is, whatever it binds to their names."""

ALWAYS_WATCHED = frozenset(["mask"])
"""Fields whose bits are compared in every rollout: with an empty mask a run would learn nothing, and say nothing."""


def count_changes(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of changes of each tensor, as far as torch counts."""
    return {
        name: value._version for name, value in fields.items() if isinstance(value, Tensor) and not value.is_inference()
    }


def digest_fields(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a digest of each named field: equal ones have equal shapes, types and bits."""
    return {name: _digest_value(fields[name]) for name in names}


def list_changed_fields(old_marks: Mapping[str, Any], new_marks: Mapping[str, Any]) -> list[str]:
    """Return the names whose values differ, sorted."""
    return sorted(name for name, value in old_marks.items() if new_marks[name] != value)


def _digest_value(value: Any) -> Any:
    """Return the digest of a tensor or of a list of tensors and texts; an object's is its identity."""
    if isinstance(value, Tensor):
        bits = value.detach().cpu().reshape(-1).contiguous().view(torch.uint8)
        return value.shape, value.dtype, hashlib.sha256(bits.numpy().data).digest()
    if isinstance(value, list | tuple):
        return [_digest_value(item) for item in value]
    return value if isinstance(value, str) else id(value)
