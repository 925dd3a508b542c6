"""Implicit reward: a process reward learned from outcomes, as a second adapter's log-ratio to the base model."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rlcredit.credit.critic import make_noise
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.second_adapter import SecondAdapter
from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.formulas.groups import leave_one_out_means
from rlcredit.formulas.masked import masked_mean


def process_returns(rewards: Tensor, mask: Tensor, judged: Tensor, group_size: int) -> Tensor:
    r"""Return the sum of the process rewards from each token on, with a baseline from the group's others.

    .. math:: \sum_{s \ge t} \Bigl(r_{i,s} - \frac{1}{G - 1} \sum_{j \ne i} \bar r_j\Bigr)

    with :math:`\bar r_j` the mean reward of a token of completion j. Cui et al. (2025, arXiv:2502.01456), equation 5;
    undiscounted.

    Args:
        rewards: Process reward of each token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        judged: True where there is a verdict; the others count as if they had not been sampled, shape ``(B,)``.
        group_size: Completions per prompt G.

    Returns:
        Shape ``(B, T)``, zero outside the mask and where a completion is its group's only one.

    Example:
        >>> rewards, mask = torch.tensor([[1.0, 3.0], [0.0, 1.0]]), torch.ones(2, 2, dtype=torch.bool)
        >>> process_returns(rewards, mask, mask[:, 0], group_size=2)  # means 2 and 0.5
        tensor([[ 3.0000,  2.5000],
                [-3.0000, -1.0000]])

    """
    means = leave_one_out_means(masked_mean(rewards, mask, dim=-1).where(judged, torch.nan), group_size)
    others = judged.view(-1, group_size).sum(-1).repeat_interleave(group_size) - judged.long()
    counted = mask & (judged & (others > 0))[:, None]
    centred = (rewards - means[:, None]).where(counted, 0)
    return centred.flip(1).cumsum(1).flip(1).where(counted, 0)


class ImplicitReward(
    CreditOperator,
    reads="advantages completion_ids judged lookahead old_logprobs prompt_ids ref_logprobs rewards step",
    writes="advantages",
    state="adapter",
    neutral={"weight": 0.0},
    costly=True,
):
    r"""Add :func:`process_returns` of a reward that a second adapter learns from outcomes (PRIME).

    .. math:: r_t = \beta \log \frac{\pi_\phi(o_t)}{\pi_{ref}(o_t)}, \qquad
        L_\phi = \operatorname{CE}\Bigl(\sigma\bigl(\textstyle\sum_t r_t\bigr),\; \text{outcome}\Bigr)

    Cui et al. (2025, arXiv:2502.01456). The adapter judges a rollout before it learns from it. Put it below the credit
    of the outcome, for the paper's ``RLOO``. The released code leaves :math:`\beta` out of the rewards, divides them by
    the largest return of the batch, and whitens the result; ``BatchNormalization`` below does the last.

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
        mask, judged = rollout.mask, rollout.judged
        adapter = SecondAdapter(**self.adapter or {"weights": self._create(rollout)})
        outcomes = rollout.rewards.clamp(0, 1)
        share = 1 / sum_over_processes(judged.sum().float()).clamp(min=1)
        rewards = torch.zeros_like(rollout.old_logprobs)

        def iterate_losses(weights: Sequence[Tensor]) -> Iterator[Tensor]:
            for parts in rollout.lookahead.iterate_states(rollout, weights):
                loss = torch.zeros_like(share)
                for rows, states in parts:
                    width = states.shape[1]
                    logprobs = rollout.lookahead.score_tokens(rollout, rows, states)
                    ratio = (logprobs - rollout.ref_logprobs[rows, :width]).where(mask[rows, :width], 0)
                    rewards[rows, :width] = self.beta * ratio.detach()
                    total = self.beta * ratio.sum(-1)[judged[rows]]
                    targets = outcomes[rows][judged[rows]]
                    loss = loss + share * binary_cross_entropy_with_logits(total, targets, reduction="sum")
                yield loss

        loss = adapter.improve(iterate_losses, self.rate)
        self.adapter = vars(adapter)
        added = self.weight * process_returns(rewards, mask, judged, rollout.group_size)
        rollout.advantages = rollout.advantages + added
        foreseen = ((rewards.sum(-1) > 0) == (outcomes > 0.5)).float()
        return {"loss": loss, "foreseen": masked_mean(foreseen, judged), "size": masked_mean(added.abs(), mask)}

    def _create(self, rollout: Rollout) -> list[Tensor]:
        return rollout.lookahead.create_adapter(make_noise(self, rollout))
