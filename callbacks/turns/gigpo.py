"""GiGPO: an episode against its group, and a turn against the group's turns that act on the same state."""

import math
from typing import Literal, get_args

from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.turn_credit import TurnCredit
from rlcredit.formulas.groups import ROUNDING_ERROR
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.turn_returns import centred_values, discounted_returns, state_means

EpisodeMean = Literal["turns", "episodes"]
"""What the mean reward of a group is taken over: its turns, so that long episodes count more, or its episodes."""


def gigpo_step_advantages(returns: Tensor, states: Tensor, group_size: int, normalize_std: bool) -> Tensor:
    r"""Subtract the mean return of the group's turns on the same state from the return that follows each turn.

    .. math:: A^S_{i,k} = G_{i,k} - \overline{G}(s_{i,k}), \qquad G_{i,k} = \sum_{l \ge k} \gamma^{l-k} r_{i,l}

    The mean is over all visits, this one among them. Shape ``(B, K)``; zero at a state that is met once.

    Args:
        returns: Table of :func:`rlcredit.formulas.turn_returns.discounted_returns`, shape ``(B, K)``.
        states: Hash of the observation that each turn acts on, shape ``(B, K)``.
        group_size: Episodes per prompt, G.
        normalize_std: Whether to divide by the unbiased deviation of the state's returns, plus 1e-6.

    Example:
        >>> import torch
        >>> returns, states = torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([[7, 8], [7, 9]])
        >>> gigpo_step_advantages(returns, states, group_size=2, normalize_std=False).tolist()
        [[0.5, 0.0], [-0.5, 0.0]]

    """
    means, visits = state_means(returns, states, group_size)
    deviations = returns - means
    if normalize_std:
        variances = state_means(deviations.square(), states, group_size)[0] * visits / (visits - 1).clamp(min=1)
        deviations = deviations / (variances.sqrt() + 1e-6)
    return deviations.where((returns - means).abs() > ROUNDING_ERROR, 0)


class GiGPO(TurnCredit, reads="judged rewards states turn turn_rewards"):
    r"""Give every token of a turn the credit of its episode and that of its step, Feng et al. (2025, arXiv:2505.10978).

    .. math:: A_{i,k} = R_i - \bar R + w\, A^S_{i,k}

    with the reward R of an episode and :func:`gigpo_step_advantages`. With ``gamma=0.95`` a success after ten turns is
    worth 0.63 of one at once, in :math:`A^S` only: short episodes are favoured. The published code takes the mean of R
    over turns, the equation over episodes. With ``weight=0`` and ``mean_over="episodes"`` it is ``GRPO``; on episodes
    of one turn it is ``GRPO`` times :math:`1 + w`.

    Args:
        gamma: Factor for every turn between an action and a reward, in the credit of a step.
        weight: Weight w of the credit of a step; 0 leaves the credit of the episode.
        mean_over: Unit of the mean reward of a group; ``turns`` or ``episodes``.
        normalize_std: Whether to divide both terms by the deviations of what they are compared with.

    """

    def __init__(
        self, gamma: float = 0.95, weight: float = 1.0, mean_over: EpisodeMean = "turns", normalize_std: bool = False
    ) -> None:
        super().__init__()
        if not (0 <= gamma <= 1 and weight >= 0):
            raise ValueError(f"GiGPO expects gamma in [0, 1] and weight >= 0, got {gamma} and {weight}.")
        self.gamma, self.weight, self.normalize_std = gamma, weight, normalize_std
        self.mean_over: EpisodeMean = require_choice("GiGPO", "mean_over", mean_over, get_args(EpisodeMean))

    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, shape ``(B, K)``."""
        size, columns = rollout.group_size, table.shape[1] if self.mean_over == "turns" else 1
        rewards = rollout.judged_rewards.double()[:, None].where(~table.isnan(), math.nan)[:, :columns]
        flat = centred_values(rewards.flatten(), size * columns, self.normalize_std).view(-1, columns)
        returns = discounted_returns(table, self.gamma)
        step = gigpo_step_advantages(returns, rollout.states, size, self.normalize_std)
        return flat + self.weight * step
