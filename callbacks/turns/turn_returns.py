"""TurnReturns: a turn is worth what is earned from it on, above the others of the group."""

from typing import Literal, get_args

from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.turn_credit import TurnCredit
from rlcredit.formulas.groups import leave_one_out_deviations
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.turn_returns import discounted_returns, leave_one_out_turns

TurnBaseline = Literal["whole", "turn"]
"""Others' returns of their whole episodes, or from the same turn on."""


def turn_return_advantages(returns: Tensor, group_size: int, baseline: TurnBaseline) -> Tensor:
    r"""Subtract the mean return of the group's other episodes from the return that follows each turn, ``(B, K)``.

    .. math:: A_{i,k} = G_{i,k} - b_{i,k}, \qquad G_{i,k} = \sum_{l \ge k} \gamma^{l-k} r_{i,l}, \qquad
        b_{i,k} = \frac{1}{G-1} \sum_{j \ne i} G_{j,0} \quad\text{or}\quad
        \frac{1}{|O_{i,k}|} \sum_{j \in O_{i,k}} G_{j,k}

    with :math:`O_{i,k}` the others that have a turn k. Given what episode i has seen before turn k, neither baseline
    depends on what it does from there on, so :math:`\mathbb{E}[b_{i,k} \nabla \log \pi(a_{i,k})] = 0`: both are
    unbiased, wherever episodes stop. A mean with episode i in it would shrink late turns, which fewer episodes have.
    Less what episode i has earned before turn k, the first baseline would leave ``RLOO``, the same for all turns.

    Args:
        returns: Table of :func:`rlcredit.formulas.turn_returns.discounted_returns`, shape ``(B, K)``.
        group_size: Episodes per prompt, G.
        baseline: First or second baseline; the first where no other episode of the group has the turn.

    Example:
        >>> import torch
        >>> returns = torch.tensor([[2.0, 1.0], [1.0, 0.0], [0.0, torch.nan]]).double()
        >>> turn_return_advantages(returns, group_size=3, baseline="whole").tolist()
        [[1.5, 0.5], [0.0, -1.0], [-1.5, nan]]
        >>> turn_return_advantages(returns, group_size=3, baseline="turn").tolist()
        [[1.5, 1.0], [0.0, -1.0], [-1.5, nan]]

    """
    whole = leave_one_out_deviations(returns[:, 0], group_size).view(-1, 1) + (returns - returns[:, :1])
    return whole if baseline == "whole" else leave_one_out_turns(returns, group_size, lone_values=whole)


class TurnReturns(TurnCredit):
    """Give every token of a turn :func:`turn_return_advantages`. Put it where ``RLOO`` would stand.

    It is ``RLOO`` on episodes of one turn, and with ``gamma=1`` and ``whole`` wherever only the last turn is rewarded.

    Args:
        gamma: Factor for every turn between an action and a reward; below 1 a late reward is worth less.
        baseline: ``whole`` or ``turn``: others' returns of their whole episodes, noisy at late turns where early ones
            are rewarded, or from the same turn on.

    """

    def __init__(self, gamma: float = 1.0, baseline: TurnBaseline = "whole") -> None:
        super().__init__()
        if not 0 <= gamma <= 1:
            raise ValueError(f"TurnReturns expects gamma in [0, 1], got {gamma}. 1 discounts nothing.")
        self.gamma = gamma
        self.baseline: TurnBaseline = require_choice("TurnReturns", "baseline", baseline, get_args(TurnBaseline))

    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, shape ``(B, K)``."""
        returns = discounted_returns(table, self.gamma)
        return turn_return_advantages(returns, rollout.group_size, self.baseline)
