"""GAE: credit from changes of the value along a completion, as PPO takes it."""

from typing import Literal, get_args

import torch

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.turns import find_turn_starts, mark_turns, spread_turns, sum_turns
from rlcredit.formulas.value_estimates import generalized_advantages

ValueCuts = Literal["token", "turn"]
"""Before what values count."""


class GAE(
    CreditOperator,
    reads="advantages critic_weight judged rewards values",
    writes="advantages",
    neutral={"share": 0.0},
):
    r"""Replace credit by :func:`rlcredit.formulas.value_estimates.generalized_advantages` of a critic's values.

    .. math:: A \leftarrow a\, A^{GAE(\lambda)} + (1 - a)\, A, \qquad a = \text{share} \times \text{critic\_weight}

    ``lam=0`` is the difference of the values behind and before a token, ``lam=1`` the reward less the value.

    Args:
        lam: Lambda.
        alpha: Makes lambda grow with the length of a completion, to :math:`1 - 1 / (\alpha T)` where that is more
            (VAPO, Yue et al., 2025, arXiv:2504.05118, with 0.05); 0 leaves it.
        share: Share of credit that is replaced where the critic has all weight.
        cuts: Where values count: before each ``token``, or each ``turn``. Then T is the number of turns, and all tokens
            of a turn get one advantage, as in Turn-PPO (Li et al., 2025, arXiv:2512.17008) and SAPO (arXiv:2608.19842).

    """

    def __init__(self, lam: float = 0.95, alpha: float = 0.0, share: float = 1.0, cuts: ValueCuts = "token") -> None:
        super().__init__()
        if not (0 <= lam <= 1 and alpha >= 0 and 0 <= share <= 1):
            raise ValueError(
                f"GAE expects lam and share from 0 to 1 and alpha >= 0, got {lam:g}, {share:g} and {alpha:g}."
            )
        self.lam = lam
        self.alpha = alpha
        self.share = share
        self.cuts: ValueCuts = require_choice("GAE", "cuts", cuts, get_args(ValueCuts))
        self.reads = self.reads | ({"turn"} if cuts == "turn" else set())

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the weight of the critic's credit and how far credit varies along a completion."""
        weight = self.share * rollout.critic_weight
        mask, values = rollout.judged_mask, rollout.values
        step_mask = mask
        if self.cuts == "turn":
            turn, width = rollout.turn, mask.shape[1]
            step_mask = mark_turns(turn, width) & rollout.judged[:, None]
            values = sum_turns(values.where(find_turn_starts(turn), 0), turn, width)
        lengths = step_mask.sum(-1).clamp(min=1)
        lam = torch.full_like(rollout.rewards, self.lam)
        if self.alpha:
            lam = torch.maximum(lam, 1 - 1 / (self.alpha * lengths))
        if weight:
            estimates = generalized_advantages(rollout.rewards, values, step_mask, lam)
            estimates = spread_turns(estimates, rollout.turn) if self.cuts == "turn" else estimates
            rollout.advantages = weight * estimates + (1 - weight) * rollout.advantages
        mean = masked_mean(rollout.advantages, mask, dim=-1, keepdim=True)
        deviation = masked_mean((rollout.advantages - mean).square(), mask).sqrt()
        return {"weight": deviation.new_tensor(weight), "lambda_mean": lam.mean(), "deviation_within": deviation}
