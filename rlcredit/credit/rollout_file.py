"""A rollout in a file: tensors and, as its metadata, everything else; no code runs when it is read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, contiguous_format

ROLLOUT_FORMAT = "rlcredit rollout 1"

UNSAVED_FIELDS = frozenset(["oracle", "lookahead", "critic", "alternatives", "continuations"])
"""Fields that need the policy, or that only its update reads."""

TRAIL_PREFIX = "trail"
"""Before the names of tensors with the advantages after each operator: place and label follow, between slashes."""


def write_rollout_file(file: str | Path, fields: Mapping[str, Any], trail: Sequence[tuple[str, Tensor]]) -> None:
    """Write the fields of a rollout, and the advantages after each operator.

    Args:
        file: File in the format of safetensors; it is replaced.
        fields: Values by field: tensors, and what JSON can hold; None is left out.
        trail: Label of each operator, and the advantages after it.

    """
    from safetensors.torch import save_file  # noqa: PLC0415  (credit is assigned without it, too)

    tensors = {name: value for name, value in fields.items() if isinstance(value, Tensor)}
    plain_values = {name: value for name, value in fields.items() if value is not None and name not in tensors}
    tensors |= {f"{TRAIL_PREFIX}/{place}/{label}": ledger for place, (label, ledger) in enumerate(trail)}
    tensors = {name: value.detach().clone(memory_format=contiguous_format) for name, value in tensors.items()}
    save_file(tensors, str(file), metadata={"format": ROLLOUT_FORMAT, "fields": json.dumps(plain_values)})


def read_rollout_file(file: str | Path) -> tuple[dict[str, Any], tuple[tuple[str, Tensor], ...]]:
    """Return the fields that :func:`write_rollout_file` has written, on the CPU, and the trail.

    Raises:
        ValueError: the file is no rollout.

    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415

    try:
        with safe_open(str(file), framework="pt") as archive:
            metadata = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118  (no mapping)
    except SafetensorError as error:
        raise ValueError(f"{file} is no file of safetensors: {error}.") from None
    if metadata.get("format") != ROLLOUT_FORMAT:
        raise ValueError(f"{file} is no rollout. Write one with Rollout.save.")
    trail = sorted((int(place), label, name) for name in tensors for place, label in _find_trail_places(name))
    ledgers = tuple((label, tensors.pop(name)) for _, label, name in trail)
    return json.loads(metadata["fields"]) | tensors, ledgers


def _find_trail_places(name: str) -> list[list[str]]:
    """Return place and label of the operator after which a tensor holds the advantages, in a list; empty for others."""
    return [name.split("/", 2)[1:]] if name.startswith(f"{TRAIL_PREFIX}/") else []
