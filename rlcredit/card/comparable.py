"""Whether a condition can be compared with a baseline, and in what they differ besides their stacks."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.campaign.differences import differences, flat
from rlcredit.card.arms import RATE, Arm, refuse_unlike
from rlcredit.card.batch import Batch, resolution_of
from rlcredit.card.budget import Budget
from rlcredit.card.subject import Subject

DRAWN = ("model.policy", "model.sampling", "model.prompt", "model.engine", "data.class_path", "data.init_args")
"""Settings on which the completions of a batch depend, but for those of :data:`HELD_OUT`."""

HELD_OUT = ("data.init_args.validation", "data.init_args.held_out")

OWN = ("condition", "trainer.callbacks", "trainer.default_root_dir", "threads")
"""Settings in which conditions differ by being others."""


def refuse_incomparable(subject: Subject, baseline: Subject, files: Sequence[str], budget: Budget) -> None:
    """Refuse, before anything is measured, a condition that cannot be compared with the baseline.

    Args:
        subject: that is judged.
        baseline: with which it is compared.
        files: configurations of the organism.
        budget: how much is to be measured.

    Raises:
        ValueError: with what differs.

    """
    if subject.plain and baseline.plain:
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        own, other = (
            (*files, str(each.written(place / name))) for name, each in (("own", subject), ("other", baseline))
        )
        leaves, base = (resolution_of(each, budget).leaves for each in (own, other))
        lines = differences(base, leaves, (baseline.name, subject.name))
        if drawn := [line for line in lines if line.startswith(DRAWN) and not line.startswith(HELD_OUT)]:
            raise ValueError(f"{subject.name} draws other completions than the baseline: {'; '.join(drawn)}.")
        if budget.seeds:
            arms = Arm(subject.name, own, rate(leaves)), Arm(baseline.name, other, rate(base))
            refuse_unlike(*arms, budget, place)


def beside(batch: Batch, base: Batch) -> list[str]:
    """Return the settings in which a condition differs from the baseline besides its name and its stack."""

    def common(each: Batch) -> dict[str, Any]:
        return {key: value for key, value in flat(each.resolution.leaves).items() if not key.startswith(OWN)}

    return differences(common(base), common(batch), ("baseline", "here"))


def rate(leaves: object) -> float:
    """Return the learning rate that a condition configures.

    Raises:
        ValueError: it names none.

    """
    for key in RATE.split("."):
        leaves = leaves.get(key) if isinstance(leaves, dict) else None
    if not isinstance(leaves, (int, float)):
        raise ValueError(f"{RATE} is not configured; a card gives every condition a learning rate. Set it.")
    return float(leaves)
