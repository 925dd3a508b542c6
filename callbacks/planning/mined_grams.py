"""Mined grams: strategic phrases found in the policy's own successful completions."""

import json
import warnings
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rlcredit.credit.contract import StackWarning
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.spans import phrase_plan_mask, plan_coverage

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from rlcredit.training.module import PolicyModule

SHIPPED_GRAMS = Path(str(files("rlcredit"))) / "tiny" / "grams.json"
"""Mined from the embedded policy before training; ``scripts/mine_grams.py`` says how."""


class MinedGrams(CreditOperator, reads="tokens turn", writes="plan_mask"):
    """Mark as planning the tokens that spell one of the phrases of a file.

    The Strategic Grams of HICRA (Wang et al., 2025, arXiv:2509.03646): n-grams of three to five words from successful
    completions are embedded and clustered; those of the clusters that occur in most completions are kept.
    ``scripts/mine_grams.py`` writes the file, from the completion tables of a run.

    Args:
        path: JSON file with a list of phrases under ``grams``; that of the embedded policy if None.

    """

    def __init__(self, path: str | None = None) -> None:
        super().__init__()
        self.path = path
        file = SHIPPED_GRAMS if path is None else Path(path)
        if not file.is_file():
            raise ValueError(f"MinedGrams found no file {file}. Write one with scripts/mine_grams.py.")
        try:
            self.grams: list[str] = json.loads(file.read_text(encoding="utf-8"))["grams"]
            valid = isinstance(self.grams, list) and all(any(map(str.isalnum, gram)) for gram in self.grams)
        except (ValueError, KeyError, TypeError):
            valid = False
        if not valid or not self.grams:
            raise ValueError(f"MinedGrams expects a JSON object with a list of phrases `grams` in {file}.")

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Warn if the phrases of the embedded policy are used for another policy."""
        super().setup(trainer, pl_module, stage)
        path = cast("PolicyModule", pl_module).policy.path
        if self.path is None and path != "tiny" and trainer.is_global_zero:
            message = f"MinedGrams uses the phrases of the policy `tiny` for {path}. Set path."
            warnings.warn(message, StackWarning, stacklevel=2)

    def assign(self, rollout: Rollout) -> Metrics:
        """Mark; log the share of tokens marked and of completions that plan at all."""
        rollout.plan_mask = phrase_plan_mask(rollout.tokens, self.grams, rollout.turn)
        return plan_coverage(rollout.plan_mask, rollout.mask)
