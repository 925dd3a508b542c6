"""StateValues: a turn is worth how far it changes the mean return of those in the group who met the same state."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.turn_credit import TurnCredit
from rlcredit.formulas.segments import segment_differences
from rlcredit.formulas.turn_returns import discounted_returns, state_means
from rlcredit.formulas.value_estimates import carried_values


def state_value_advantages(returns: Tensor, means: Tensor, visits: Tensor, gamma: float) -> Tensor:
    r"""Return the temporal difference between one state that the group has met again and the next, ``(B, K)``.

    .. math:: A_{i,k} = \sum_{l=a}^{n-1} \gamma^{l-a} r_{i,l} + \gamma^{n-a} V(s_{i,n}) - V(s_{i,a}), \qquad
        V(s) = \overline{G}(s)

    the mean return after all visits of the group, zero at the end. Where every state is met again, it is
    :math:`r_k + \gamma V(s_{k+1}) - V(s_k)`. The value of a state that is met once is the one return that followed,
    from which nothing differs: turns at such states share the credit of the last turn a before them whose state is met
    again, or of the first turn, up to the next such turn n. So a group that shares only its prompt has the credit of
    ``GRPO``. V contains the return that it is subtracted from, as in ``TEMPO``.

    Args:
        returns: Table of :func:`rlcredit.formulas.turn_returns.discounted_returns`, shape ``(B, K)``.
        means: Means of :func:`rlcredit.formulas.turn_returns.state_means`, shape ``(B, K)``.
        visits: Visits of the same function, shape ``(B, K)``.
        gamma: Discount of the returns, above 0.

    Example:
        >>> returns = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]).double()
        >>> means, visits = state_means(returns, torch.tensor([[7, 8, 5], [7, 9, 5]]), group_size=2)
        >>> state_value_advantages(returns, means, visits, gamma=1.0).tolist()  # the middle states are met once
        [[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]

    """
    turn_mask, place = ~returns.isnan(), torch.arange(returns.shape[1] + 1, device=returns.device)
    discounts = gamma ** place.to(returns.dtype)
    surprises = pad((returns - means).nan_to_num(), (0, 1)) * discounts
    starts = turn_mask & ((visits > 1) | (place[:-1] == 0))
    scales = carried_values(discounts[:-1].expand_as(returns), starts, torch.ones_like(turn_mask))
    return segment_differences(-surprises, starts, turn_mask) / scales


class StateValues(TurnCredit, reads="judged rewards states turn turn_rewards"):
    """Give every token of a turn :func:`state_value_advantages`. Put it where ``GRPO`` would stand.

    It is the value part of G2PO (Wang et al., 2026, arXiv:2606.22995) and MileGPO (arXiv:2608.19803), a reconstruction
    from their abstracts; G2PO also standardises the differences. On episodes of one turn it is ``GRPO``.

    Args:
        gamma: Factor for every turn between an action and a reward; 1 discounts nothing.

    """

    def __init__(self, gamma: float = 1.0) -> None:
        super().__init__()
        if not 0 < gamma <= 1:
            raise ValueError(f"StateValues expects gamma in (0, 1], got {gamma}. 1 discounts nothing.")
        self.gamma = gamma

    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, shape ``(B, K)``."""
        returns = discounted_returns(table, self.gamma)
        means, visits = state_means(returns, rollout.states, rollout.group_size)
        return state_value_advantages(returns, means, visits, self.gamma)
