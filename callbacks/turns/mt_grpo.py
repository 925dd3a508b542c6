"""MTGRPO: every turn against the group's turns of its number, the outcome against the group's."""

import math

from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.turn_credit import TurnCredit
from rlcredit.formulas.turn_returns import centred_values, compare_turns, discounted_returns


def mt_grpo_advantages(table: Tensor, group_size: int, weight: float, normalize_std: bool) -> Tensor:
    r"""Add the centred rewards of a turn and of those between it and the last to the centred outcome.

    .. math:: A_{i,k} = (o_i - \bar o) + w \sum_{l=k}^{K_i - 2} (r_{i,l} - \bar r_l)

    with the outcome o, the reward of the last turn, and :math:`\bar r_l` the mean over the group's episodes that go on
    after turn l. How many means are subtracted depends on the turn at which episode i itself stops: to go on costs
    :math:`\bar r_l`, the mean of all that is earned by it. So the expected gradient is not the reward's where the
    policy decides when to stop (verl issue 7244); ``TurnReturns`` is the unbiased form.

    Args:
        table: Reward of each turn, shape ``(B, K)`` like the result, NaN where there is no turn or verdict.
        group_size: Episodes per prompt, G.
        weight: Weight w of the turns before the last; 0 leaves ``GRPO`` of the outcome.
        normalize_std: Whether to divide both differences by the unbiased deviations of what is compared.

    Example:
        >>> import torch
        >>> table = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, torch.nan]]).double()
        >>> mt_grpo_advantages(table, group_size=3, weight=3.0, normalize_std=False)[:, 0].tolist()  # 1.5 - 1/3 first
        [1.1666666666666667, -1.8333333333333333, 0.6666666666666667]

    """
    end_mask = ~table.isnan() & pad(table, (0, 1), value=math.nan)[:, 1:].isnan()
    outcomes = table.where(end_mask, 0).sum(-1).where(end_mask.any(-1), math.nan)
    flat = centred_values(outcomes, group_size, normalize_std).view(-1, 1)
    steps = table.where(~end_mask, math.nan)
    distances = compare_turns(lambda values, size: centred_values(values, size, normalize_std), steps, group_size)
    return flat + weight * discounted_returns(distances.where(~table.isnan(), math.nan), gamma=1.0)


class MTGRPO(TurnCredit):
    """Give every token of a turn :func:`mt_grpo_advantages`, MT-GRPO of Zeng et al. (2025, arXiv:2505.11821).

    For more than two turns it is the sum that verl issue 7244 examines, and a control for ``TurnReturns``. On episodes
    of one turn it is ``GRPO``.

    Args:
        weight: Weight of the turns before the last.
        normalize_std: Whether to divide by the deviations of what is compared, as published.

    """

    def __init__(self, weight: float = 1.0, normalize_std: bool = True) -> None:
        super().__init__()
        if not weight >= 0:
            raise ValueError(f"MTGRPO expects weight >= 0, got {weight}. 0 leaves the outcome alone.")
        self.weight, self.normalize_std = weight, normalize_std

    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, shape ``(B, K)``."""
        return mt_grpo_advantages(table, rollout.group_size, self.weight, self.normalize_std)
