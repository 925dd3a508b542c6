"""The batch on which a run has ended, in a file that can be read without running its code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcredit.base.files import write_durably
from rlcredit.credit.rollout import FACTS, NEUTRAL, Rollout


def collect_postmortem(rollout: Rollout, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors and plain Python for ``torch.load(..., weights_only=True)``.

    Args:
        rollout: whose facts and ledger are kept, by the names of its fields, and the operators that have assigned
            credit, each with the advantages after it; the oracle and other objects are not.
        details: what else to keep, tensors and plain Python.

    """
    facts = {name: _detach_tensor(getattr(rollout, name)) for name in sorted(FACTS - {"oracle"})}
    ledger = {name: _detach_tensor(getattr(rollout, name)) for name in NEUTRAL}
    return {
        **{name: _detach_tensor(value) for name, value in details.items()},
        "update": rollout.update,
        "prompts": [int(number) for number, _ in rollout.sources],
        "facts": facts,
        "ledger": ledger,
        "trail": [(label, _detach_tensor(advantages)) for label, advantages in rollout.trail],
    }


def _detach_tensor(value: Any) -> Any:
    """Detach a tensor from its graph, its device and whatever storage it is a view of."""
    return value.detach().cpu().contiguous().clone() if isinstance(value, Tensor) else value


def write_postmortem(path: Path, content: Mapping[str, Any]) -> str:
    """Write a post-mortem and return the sentence that says where it lies, or why it could not be written.

    Args:
        path: of the file.
        content: by :func:`collect_postmortem`.

    """
    try:
        write_durably(path, lambda file: torch.save(dict(content), file))
    except (OSError, RuntimeError) as error:  # torch raises the latter for a full disk
        return f"The batch could not be kept in {path}: {error}."
    return f"The batch is kept in {path}."
