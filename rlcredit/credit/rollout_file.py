"""A rollout in a file: tensors and, as its metadata, everything else; no code runs when it is read."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor, contiguous_format

from rlcredit.credit.rollout import FACT_FIELDS, NEUTRAL_VALUES, Rollout

ROLLOUT_FORMAT = "rlcredit rollout 1"

UNSAVED_FIELDS = frozenset(["oracle", "lookahead", "critic", "alternatives", "continuations"])
"""Fields that need the policy, or that only its update reads."""


TRAIL_PREFIX = "trail"
"""Before the names of tensors with the advantages after each operator: place and label follow, between slashes."""


def save_rollout(rollout: Rollout, file: str | Path) -> None:
    """Write a rollout: its facts, the fields of the ledger that operators have written, and the credit after each.

    Args:
        rollout: Rollout whose fields are saved, but for those that need the policy.
        file: File in the format of safetensors; it is replaced.

    """
    from safetensors.torch import save_file  # noqa: PLC0415  (credit is assigned without it, too)

    names = (FACT_FIELDS | (NEUTRAL_VALUES.keys() - rollout.unwritten)) - UNSAVED_FIELDS
    values = {name: getattr(rollout, name) for name in sorted(names)}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    plain_values = {name: value for name, value in values.items() if value is not None and name not in tensors}
    tensors |= {f"{TRAIL_PREFIX}/{place}/{label}": ledger for place, (label, ledger) in enumerate(rollout.trail)}
    tensors = {name: value.detach().clone(memory_format=contiguous_format) for name, value in tensors.items()}
    save_file(tensors, str(file), metadata={"format": ROLLOUT_FORMAT, "fields": json.dumps(plain_values)})


def load_rollout(file: str | Path) -> Rollout:
    """Return the rollout that :func:`save_rollout` has written, on the CPU.

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
    fields: dict[str, Any] = json.loads(metadata["fields"]) | tensors
    if strangers := sorted(fields.keys() - FACT_FIELDS - NEUTRAL_VALUES.keys()):
        raise ValueError(f"{file} holds {strangers[0]}, which no rollout has. It was written by another version.")
    rollout = Rollout(**{name: value for name, value in fields.items() if name in FACT_FIELDS})
    for name in NEUTRAL_VALUES:  # in the order in which they are made of each other
        if name in fields:
            setattr(rollout, name, fields[name])
    rollout.trail = ledgers
    return rollout


def _find_trail_places(name: str) -> list[list[str]]:
    """Return place and label of the operator after which a tensor holds the advantages, in a list; empty for others."""
    return [name.split("/", 2)[1:]] if name.startswith(f"{TRAIL_PREFIX}/") else []
