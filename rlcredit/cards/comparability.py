"""Whether a condition can be compared with a baseline, and which settings other than the stack differ."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.campaign.config_differences import flatten_config, list_differences
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.card_batch import CardBatch, resolve_batch_config
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.paired_runs import RATE_SETTING, PairedRuns, TrainingCondition

SAMPLING_SETTINGS = (
    "model.policy",
    "model.sampling",
    "model.prompt",
    "model.engine",
    "data.class_path",
    "data.init_args",
)
"""Settings on which the completions of a batch depend, but for those of :data:`HELD_OUT_SETTINGS`."""

HELD_OUT_SETTINGS = ("data.init_args.validation", "data.init_args.held_out")

OWN_SETTINGS = ("condition", "trainer.callbacks", "trainer.default_root_dir", "threads")
"""Settings in which conditions differ by being others."""


def refuse_incomparable_condition(
    candidate: CardCondition, baseline: CardCondition, files: Sequence[str], budget: CardBudget
) -> None:
    """Refuse, before anything is measured, a condition that cannot be compared with the baseline.

    Args:
        candidate: Condition that is judged.
        baseline: Condition with which it is compared.
        files: Configuration files of the test policy.
        budget: Budget that says how much is to be measured.

    Raises:
        ValueError: with what differs.

    """
    if candidate.is_stack_only and baseline.is_stack_only:
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        candidate_files, baseline_files = (
            (*files, str(condition.write_files(place / name)))
            for name, condition in (("own", candidate), ("other", baseline))
        )
        leaves, base = (resolve_batch_config(configs, budget).leaves for configs in (candidate_files, baseline_files))
        lines = list_differences(base, leaves, (baseline.name, candidate.name))
        if reasons := [
            line for line in lines if line.startswith(SAMPLING_SETTINGS) and not line.startswith(HELD_OUT_SETTINGS)
        ]:
            raise ValueError(f"{candidate.name} samples other completions than the baseline: {'; '.join(reasons)}.")
        if budget.seeds:
            conditions = (
                TrainingCondition(candidate.name, candidate_files, read_learning_rate(leaves)),
                TrainingCondition(baseline.name, baseline_files, read_learning_rate(base)),
            )
            PairedRuns(budget, place).refuse_unlike_evaluation(*conditions)


def list_unequal_settings(batch: CardBatch, base: CardBatch) -> list[str]:
    """Return the settings, other than name and stack, in which a condition differs from the baseline."""

    def common(card_batch: CardBatch) -> dict[str, Any]:
        return {
            key: value
            for key, value in {**flatten_config(card_batch.resolution.leaves), **card_batch.updates}.items()
            if not key.startswith(OWN_SETTINGS)
        }

    return list_differences(common(base), common(batch), ("baseline", "here"))


def read_learning_rate(leaves: object) -> float:
    """Return the learning rate that a condition configures.

    Raises:
        ValueError: it names none.

    """
    for key in RATE_SETTING.split("."):
        leaves = leaves.get(key) if isinstance(leaves, dict) else None
    if not isinstance(leaves, (int, float)):
        raise ValueError(
            f"{RATE_SETTING} is not configured, and a card needs a learning rate for every condition. Set it."
        )
    return float(leaves)
