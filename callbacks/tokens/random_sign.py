"""A control for credit whose sign is learned: as much of it on every token, its sign drawn at random."""

from typing import get_args

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number
from rlcredit.formulas.groups import GroupChoice, chosen_rows
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice


class RandomSign(
    CreditOperator,
    reads="advantages correct judged step",
    writes="advantages",
    neutral={"share": 0.0},
    rewards="binary",
):
    r"""Turn the sign of a random share of the advantages in groups without a right answer.

    Put it below ``SelfDistillation``: every token keeps the size of its credit, and what is gained without this
    operator and not with it is due to the sign.

    Args:
        share: Probability of a token that its sign is turned; one half leaves nothing of it, 0 leaves all.
        groups: Groups whose signs are turned: ``all_wrong`` or ``all``.
        seed: Number that tells the draws of two of these apart; they also depend on the run's seed, step, row and
            position.

    """

    def __init__(self, share: float = 0.5, groups: GroupChoice = "all_wrong", seed: int = 0) -> None:
        super().__init__()
        if not 0 <= share <= 1:
            raise ValueError(f"RandomSign expects share in [0, 1], got {share:g}. It is a probability.")
        self.share = share
        self.groups: GroupChoice = require_choice("RandomSign", "groups", groups, get_args(GroupChoice))
        self.seed = seed

    def assign(self, rollout: Rollout) -> Metrics:
        """Turn; log the share of all tokens whose sign is turned."""
        draws = self.draw_token_uniforms(rollout, stream_number("RandomSign", self.seed))
        row_mask = chosen_rows(rollout.verdicts, rollout.group_size, self.groups)
        turned_mask = (draws < self.share) & rollout.mask & row_mask[:, None]
        rollout.advantages = rollout.advantages.where(~turned_mask, -rollout.advantages)
        return {"turned_fraction": masked_mean(turned_mask.float(), rollout.mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
