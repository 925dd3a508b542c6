"""Oracle teacher: critics learn values of prefixes that were measured by continuing them."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


class OracleTeacher(
    CreditOperator,
    reads="correct judged oracle returns rewards",
    writes="returns",
    neutral={"completions": 0},
    costly=True,
):
    """Replace the returns of some completions by the share of right ones among continuations of every prefix.

    A reward is one draw of what a prefix is worth; its continuations are many, all from the policy as it is. Put it
    above a critic. The continuations are decoded and not trained on: the metric says how many tokens.

    Args:
        completions: Completions asked about, evenly spaced in the rollout; 0 teaches nothing.
        samples: Continuations per prefix.

    """

    def __init__(self, completions: int = 2, samples: int = 4) -> None:
        super().__init__()
        if completions < 0 or samples < 1:
            raise ValueError(
                f"OracleTeacher expects completions >= 0 and samples >= 1, got {completions} and {samples}."
            )
        self.completions = completions
        self.samples = samples

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the tokens decoded, and how far rewards lie from what replaces them."""
        if not self.completions:
            return {}
        rows, decoded_count = rollout.evenly_spaced_rows(self.completions), rollout.oracle.decoded
        mask = rollout.mask[rows]
        outcomes = rollout.oracle.outcomes(rollout, rows, mask.cpu(), self.samples)
        values = outcomes.mean(-1)[:, :-1].to(rollout.returns)
        returns = rollout.returns.clone()
        returns[rows] = values.where(mask, returns[rows])
        rollout.returns = returns
        noise = masked_mean((values - rollout.rewards[rows, None]).square(), mask).sqrt()
        return {"decoded_tokens": float(rollout.oracle.decoded - decoded_count), "reward_noise": noise}
