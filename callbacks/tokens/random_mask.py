"""A control for masks: as many tokens keep their credit, chosen at random."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.scopes import Scope, top_share_mask


class RandomMask(CreditOperator, reads="judged step advantages", writes="advantages", neutral={"rho": 1.0}):
    r"""Erase the advantages of all but a random share of tokens, exactly :math:`\max(1, \lfloor \rho n \rfloor)` of n.

    If another mask does better than this one, that is due to *which* tokens it keeps, not to how many.

    Args:
        rho: Share of tokens kept; 1 keeps every token.
        scope: Tokens among which the share is kept: ``sequence``, ``group`` or ``batch``.
        seed: Number that tells the draws of two random masks apart; they also depend on the run's seed, step, row and
            position.

    """

    def __init__(self, rho: float = 0.2, scope: Scope = "batch", seed: int = 0) -> None:
        super().__init__()
        if not 0 < rho <= 1:
            raise ValueError(f"RandomMask expects rho in (0, 1], got {rho}. It is the share of tokens that is kept.")
        self.rho, self.seed = rho, seed
        self.scope: Scope = scope

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share asked for and the share kept."""
        mask, draws = rollout.judged_mask, self.draw_token_uniforms(rollout, stream_number("RandomMask", self.seed))
        selection = top_share_mask(draws, mask, self.rho, self.scope, rollout.group_size)
        rollout.advantages = rollout.advantages.where(selection, 0)
        return {"requested_fraction": self.rho, "kept_fraction": masked_mean(selection.float(), mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
