"""Implicit reward: a process reward learned from outcomes, as a second adapter's log-ratio to the base model."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.second_adapter import SecondAdapter, share_of_all
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.value_estimates import process_returns


class ImplicitReward(
    CreditOperator,
    reads="advantages completion_ids correct judged lookahead old_logprobs prompt_ids ref_logprobs step",
    writes="advantages",
    state="adapter",
    neutral={"weight": 0.0},
    costly=True,
    rewards="binary",
):
    r"""Add the returns of a process reward that a second adapter learns from outcomes (PRIME).

    .. math:: r_t = \beta \log \frac{\pi_\phi(o_t)}{\pi_{ref}(o_t)}, \qquad
        L_\phi = \operatorname{CE}\Bigl(\sigma\bigl(\textstyle\sum_t r_t\bigr),\; \text{outcome}\Bigr)

    Cui et al. (2025, arXiv:2502.01456); see :func:`rlcredit.formulas.value_estimates.process_returns`. The adapter
    judges a rollout before it learns from it. Put it below the credit of the outcome, for the paper's ``RLOO``. The
    released code leaves :math:`\beta` out of the rewards, stretches them by G / (G - 1) about the completion's mean,
    divides them by the largest return of the batch, and whitens the result; ``BatchNormalization`` below does the last.

    Args:
        beta: Scale of the log-ratio.
        rate: Learning rate of AdamW; gradients are clipped to a norm of one.
        weight: Weight of the process returns beside the credit that is there.

    """

    def __init__(self, beta: float = 0.05, rate: float = 1e-3, weight: float = 1.0) -> None:
        super().__init__()
        if not (beta > 0 and rate > 0 and weight >= 0):
            raise ValueError(
                f"ImplicitReward expects beta > 0, rate > 0 and weight >= 0, got {beta:g}, {rate:g} and {weight:g}."
            )
        self.beta = beta
        self.rate = rate
        self.weight = weight
        self.adapter: dict = {}

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the loss on this rollout, not seen before, how often the outcome is foreseen, and the size added."""
        mask, verdict_mask = rollout.mask, rollout.judged
        share, rewards = share_of_all(verdict_mask), torch.zeros_like(rollout.old_logprobs)
        if not share:
            return {}

        def compute_loss(rows: Tensor, states: Tensor, extra_weights: Sequence[Tensor]) -> Tensor:
            width = states.shape[1]
            logprobs = rollout.lookahead.score_tokens(rollout, rows, states)
            ratio = (logprobs - rollout.ref_logprobs[rows, :width]).where(mask[rows, :width], 0)
            rewards[rows, :width] = self.beta * ratio.detach()
            totals, outcomes = self.beta * ratio.sum(-1), rollout.correct[rows]
            row_mask = verdict_mask[rows]
            return share * binary_cross_entropy_with_logits(totals[row_mask], outcomes[row_mask], reduction="sum")

        adapter = SecondAdapter.restore_or_create(self.adapter, self, rollout)
        loss = adapter.improve(rollout, compute_loss, self.rate)
        self.adapter = vars(adapter)
        bonus = self.weight * process_returns(rewards, mask, verdict_mask, rollout.group_size)
        rollout.advantages = rollout.advantages + bonus
        foreseen = ((rewards.sum(-1) > 0) == (rollout.correct > 0.5)).float()
        return {"loss": loss, "foreseen": masked_mean(foreseen, verdict_mask), "size": masked_mean(bonus.abs(), mask)}
