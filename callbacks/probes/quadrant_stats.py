"""Where credit and gradient lie among the four quadrants, and how much entropy tells about the outcome."""

from typing import get_args

import numpy as np
import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_quantiles, masked_sum
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.quadrants import Threshold, high_entropy_mask, mutual_information, quadrant_masks
from rlcredit.formulas.scopes import Scope
from rlcredit.formulas.uncertainty import squared_score_norm

ENTROPY_BINS = 10
SHUFFLE_COUNT = 20


class QuadrantStats(
    CreditOperator, reads="advantages correct entropy judged old_logprobs step sum_pi_squared", writes=""
):
    r"""Log each quadrant's share of tokens, of credit and of gradient; see :func:`quadrant_masks` for their names.

    ``_credit`` is the share of :math:`\sum |A|`, ``_gradient`` that of the norms of the gradients with respect to the
    logits, :math:`|A_t| \sqrt{1 - 2 \pi_t + \sum_v \pi_v^2}`, which on policy is exact. ``information`` is the mutual
    information of a token's entropy, in ten bins of equal size, and its answer's verdict, in nats, the proxy of He et
    al. (2026, arXiv:2604.11056); ``information_shuffled`` is the mean over 20 permutations of the verdicts inside each
    group: what finite batches and prompts of unequal difficulty yield by themselves.

    Args:
        threshold: What counts as high entropy: at least the ``mean``, at least the ``median``, or the ``top`` share.
        scope: Tokens over which the mean, the median or the share is taken.
        share: Share of the tokens, used by ``top`` only.

    """

    def __init__(self, threshold: Threshold = "mean", scope: Scope = "group", share: float = 0.2) -> None:
        super().__init__()
        self.threshold: Threshold = require_choice("QuadrantStats", "threshold", threshold, get_args(Threshold))
        self.scope: Scope = require_choice("QuadrantStats", "scope", scope, get_args(Scope))
        if not 0 < share <= 1:
            raise ValueError(f"QuadrantStats expects share in (0, 1], got {share}.")
        self.share = share

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the shares and both informations."""
        mask, credit = rollout.mask, rollout.advantages.abs()
        high = high_entropy_mask(rollout.entropy, mask, self.threshold, self.scope, rollout.group_size, self.share)
        norm = squared_score_norm(rollout.old_logprobs, rollout.sum_pi_squared).sqrt()
        masses = {"tokens": torch.ones_like(credit), "credit": credit, "gradient": credit * norm}
        metrics: dict[str, Tensor | float] = {}
        for name, selection in quadrant_masks(rollout.advantages, high, mask).items():
            for kind, mass in masses.items():
                total = masked_sum(mass, mask)
                metrics[f"{name}_{kind}"] = (masked_sum(mass, selection) / total).where(total > 0, 0)
        information, chance_level = self._information(rollout)
        return {**metrics, "information": information, "information_shuffled": chance_level}

    def _information(self, rollout: Rollout) -> tuple[float, float]:
        mask = rollout.mask & rollout.judged[:, None]
        if not mask.any():
            return 0.0, 0.0
        shares = [number / ENTROPY_BINS for number in range(1, ENTROPY_BINS)]
        edges = torch.stack(masked_quantiles(rollout.entropy, mask, shares)).unique()
        bins = torch.bucketize(rollout.entropy.contiguous(), edges, right=True)
        groups = (rollout.correct > 0.5).long().view(-1, rollout.group_size).cpu()
        random = np.random.default_rng([self.run_seed, rollout.step])

        def information(verdicts: Tensor) -> float:
            labels = verdicts.flatten()[:, None].expand(mask.shape).to(mask.device)
            return mutual_information(bins[mask], labels[mask]).item()

        null = [information(torch.from_numpy(random.permuted(groups.numpy(), axis=1))) for _ in range(SHUFFLE_COUNT)]
        return information(groups), float(np.mean(null))
