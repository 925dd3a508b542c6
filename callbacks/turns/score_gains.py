"""ScoreGains: a turn is worth how far it, and what it led to, raised the score of the state."""

import math

import torch
from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.turn_credit import TurnCredit
from rlcredit.formulas.running_sums import running_sums
from rlcredit.formulas.turn_returns import discounted_returns, leave_one_out_turns


def score_gains(scores: Tensor, gamma: float) -> Tensor:
    r"""Return the gains of scores over the best so far, each distributed over its own turn and those before it.

    .. math:: c_k = \sum_{l \ge k} g_l\, \frac{\gamma^{l-k}}{\sum_{d=0}^{l} \gamma^d}, \qquad
        g_l = \max\bigl(0,\; s_l - \max_{j<l} s_j\bigr), \quad g_0 = s_0

    The credit of an episode adds up to its best score. A score that falls and rises again gains nothing.

    Args:
        scores: Score of the state that each turn has led to, shape ``(B, K)`` like the result, NaN where there is none.
        gamma: Factor for every turn further back; 0 leaves a gain where it was made, 1 shares it evenly.

    Example:
        >>> score_gains(torch.tensor([[0.0, 3.0, 2.0]]), gamma=0.5).tolist()
        [[1.0, 2.0, 0.0]]

    """
    best = scores.nan_to_num(-math.inf).cummax(-1).values
    gains = torch.cat([scores[:, :1], (scores[:, 1:] - best[:, :-1]).clamp(min=0)], 1)
    weights = gamma ** torch.arange(scores.shape[1], device=scores.device).to(scores.dtype)
    return discounted_returns(gains / running_sums(weights), gamma)


class ScoreGains(TurnCredit):
    """Give every token of a turn :func:`score_gains`, less the mean of the group's others at the same turn.

    Rewards of turns are read as scores of the state that a turn has led to, not as what it has earned. The gain over
    the best is that of TCPO (arXiv:2608.01667), without its counterfactuals; the way back is that of turn credit in
    prime-rl (pull request 3282), where a gain is over the previous score. Where no other episode has the turn, nothing
    is subtracted. On episodes of one turn it is ``RLOO``.

    Args:
        gamma: Factor for every turn further back.

    """

    def __init__(self, gamma: float = 0.5) -> None:
        super().__init__()
        if not 0 <= gamma <= 1:
            raise ValueError(f"ScoreGains expects gamma in [0, 1], got {gamma}. 0 leaves a gain where it was made.")
        self.gamma = gamma

    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, shape ``(B, K)``."""
        credit = score_gains(table, self.gamma)
        return leave_one_out_turns(credit, rollout.group_size, lone_values=credit)
