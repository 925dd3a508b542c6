"""How often the process signal and the outcome disagree about a token."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


class PolarityMisalignment(CreditOperator, reads="process advantages"):
    """Log the share of tokens whose process label, the sign of ``process``, is not the sign of their advantage.

    Split into tokens that the process finds good in answers that credit punishes, and bad ones in answers that credit
    rewards. Below ``BucketNormalization`` the labels are relative to the group. This is a proposal, because we do not
    have the papers' own measure. Tokens without a label or without credit do not count.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the shares of the tokens that have both a label and credit."""
        label_mask = rollout.mask & (rollout.process != 0) & (rollout.advantages != 0)
        good, has_praise = rollout.process > 0, rollout.advantages > 0
        kinds = {"good_but_punished": good & ~has_praise, "bad_but_rewarded": ~good & has_praise}
        shares = {name: masked_mean(selection.float(), label_mask) for name, selection in kinds.items()}
        return {
            "misaligned_fraction": sum(shares.values()),
            **shares,
            "labelled_fraction": masked_mean(label_mask.float(), rollout.mask),
        }
