"""Stop all processes at a fault, and keep its batch in a file that can be read without running its code."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from rlcredit.base.exit_status import NotFinite, RunStopped
from rlcredit.base.files import write_durably
from rlcredit.credit.rollout import FACT_FIELDS, NEUTRAL_VALUES, Rollout
from rlcredit.formulas.distributed import is_set_anywhere, share_first_value
from rlcredit.record.artifacts import find_run_folder

OBJECT_FIELDS = frozenset(["oracle", "lookahead", "critic"])
"""Fields of a rollout that are no values: with them the file would hold a policy, and running code to read it."""


def stop_on_fault(trainer: Trainer, fault: RunStopped | None, rollout: Rollout, **details: Any) -> None:
    """Stop all processes if one has a fault; each keeps its own batch. Every process must call this.

    Args:
        trainer: The run.
        fault: What is wrong in this process, if anything.
        rollout: The batch that is kept.
        details: What else is kept, tensors and plain Python.

    Raises:
        RunStopped: with the message of the first process that has a fault.

    """
    if not is_set_anywhere(fault is not None, trainer.strategy.root_device):
        return
    step, rank = trainer.global_step, trainer.global_rank
    content = collect_postmortem(rollout, {"step": step, "rank": rank, "message": str(fault or ""), **details})
    location = write_postmortem(find_run_folder(trainer).postmortem_file(step, rank), content)
    raise share_first_value(fault and type(fault)(f"{fault} {location}"))


@contextlib.contextmanager
def stop_on_not_finite(trainer: Trainer, rollout: Rollout) -> Iterator[None]:
    """Stop all processes if one finds NaN or infinity here, and keep the batch; every process must enter."""
    fault = None
    try:
        yield
    except NotFinite as error:
        fault = error
    stop_on_fault(trainer, fault, rollout)


def collect_postmortem(rollout: Rollout, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors and plain Python for ``torch.load(..., weights_only=True)``.

    Args:
        rollout: Rollout whose facts and ledger are kept, by the names of its fields, and the operators that have
            assigned credit, each with the advantages after it; oracle, critic and other objects are not.
        details: Other things to keep, tensors and plain Python.

    """
    facts = {name: _detach_tensor(getattr(rollout, name)) for name in sorted(FACT_FIELDS - OBJECT_FIELDS)}
    ledger = {name: _detach_tensor(getattr(rollout, name)) for name in NEUTRAL_VALUES if name not in OBJECT_FIELDS}
    for name in ("alternatives", "continuations"):
        if ledger[name] is not None:
            ledger[name] = {field: _detach_tensor(value) for field, value in ledger[name]._asdict().items()}
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
    """Write a post-mortem and return a sentence with its path, or why it could not be written.

    Args:
        path: Path of the file.
        content: Content, by :func:`collect_postmortem`.

    """
    try:
        write_durably(path, lambda file: torch.save(dict(content), file))
    except (OSError, RuntimeError) as error:  # torch raises the latter for a full disk
        return f"The batch could not be kept in {path}: {error}."
    return f"The batch is kept in {path}."
