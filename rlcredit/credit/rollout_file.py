"""A rollout in a file: tensors and, as its metadata, everything else; no code runs when it is read."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from rlcredit.credit.rollout import FACTS, NEUTRAL, Rollout

FORMAT = "rlcredit rollout 1"

UNSAVED = frozenset(["oracle", "lookahead", "critic", "alternatives", "continuations"])
"""Fields that need the policy, or that only its update reads."""


def save_rollout(rollout: Rollout, file: str | Path) -> None:
    """Write a rollout: its facts, and the fields of the ledger that operators have written.

    Args:
        rollout: Rollout whose fields are saved, but for those that need the policy.
        file: File in the format of safetensors; it is replaced.

    """
    from safetensors.torch import save_file  # noqa: PLC0415  (credit is assigned without it, too)

    names = (FACTS | (NEUTRAL.keys() - rollout.unwritten)) - UNSAVED
    values = {name: getattr(rollout, name) for name in sorted(names)}
    tensors = {name: value.detach().contiguous() for name, value in values.items() if isinstance(value, Tensor)}
    others = {name: value for name, value in values.items() if value is not None and name not in tensors}
    save_file(tensors, str(file), metadata={"format": FORMAT, "fields": json.dumps(others)})


def load_rollout(file: str | Path) -> Rollout:
    """Return the rollout that :func:`save_rollout` has written, on the CPU.

    Raises:
        ValueError: the file is no rollout.

    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415

    try:
        with safe_open(str(file), framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping)
    except SafetensorError as error:
        raise ValueError(f"{file} is no file of safetensors: {error}.") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{file} is no rollout. Write one with Rollout.save.")
    fields: dict[str, Any] = json.loads(metadata["fields"]) | tensors
    if unknown := sorted(fields.keys() - FACTS - NEUTRAL.keys()):
        raise ValueError(f"{file} holds {unknown[0]}, which no rollout has. It was written by another version.")
    rollout = Rollout(**{name: value for name, value in fields.items() if name in FACTS})
    for name in NEUTRAL:  # in the order in which they are made of each other
        if name in fields:
            setattr(rollout, name, fields[name])
    return rollout
