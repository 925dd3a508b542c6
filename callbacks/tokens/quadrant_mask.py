"""Quadrant mask: credit in some of the four quadrants only, for controlled ablations."""

from typing import get_args

import torch

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.quadrants import ALL_QUADRANTS, Quadrant, Threshold, high_entropy_mask, quadrant_masks
from rlcredit.formulas.scopes import Scope


class QuadrantMask(
    CreditOperator,
    reads="judged advantages entropy",
    writes="advantages",
    neutral={"keep": ("PHR", "PLR", "NHR", "NLR")},
):
    """Erase the advantages outside the quadrants named; see :func:`quadrant_masks`.

    The loss goes on dividing by all tokens, as in the paper's ablation (He et al., 2026, arXiv:2604.11056).

    Args:
        keep: Quadrants that keep their advantages, among PHR, PLR, NHR and NLR: positive or negative credit, high or
            low entropy; all four are the identity.
        threshold: What counts as high entropy: at least the ``mean``, the paper's, at least the ``median``, or the
            ``top`` share.
        scope: Tokens over which the mean, the median or the share is taken; the paper takes the group.
        share: Share of the tokens, used by ``top`` only.

    """

    def __init__(
        self,
        keep: tuple[Quadrant, ...] = ALL_QUADRANTS,
        threshold: Threshold = "mean",
        scope: Scope = "group",
        share: float = 0.2,
    ) -> None:
        super().__init__()
        self.keep: tuple[Quadrant, ...] = tuple(
            require_choice("QuadrantMask", "keep", name, ALL_QUADRANTS) for name in keep
        )
        self.threshold: Threshold = require_choice("QuadrantMask", "threshold", threshold, get_args(Threshold))
        self.scope: Scope = require_choice("QuadrantMask", "scope", scope, get_args(Scope))
        if not (self.keep and 0 < share <= 1):
            raise ValueError(f"QuadrantMask expects some quadrant to keep and share in (0, 1], got {keep} and {share}.")
        self.share = share

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of credited tokens kept."""
        mask, old_credit = rollout.judged_mask, rollout.advantages
        high = high_entropy_mask(rollout.entropy, mask, self.threshold, self.scope, rollout.group_size, self.share)
        regions = quadrant_masks(old_credit, high, mask)
        selection = torch.zeros_like(mask)
        for quadrant in self.keep:
            selection = selection | regions[quadrant]
        rollout.advantages = old_credit.where(selection, 0)
        return {"kept_fraction": masked_mean(selection.float(), mask & (old_credit != 0))}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
