"""Canonical GTPO: entropy shares a bonus out among the right answers of a group, and a malus among the wrong ones."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.outcome_sets import NormSet, outcome_normalized, shaped_rewards
from rlcredit.formulas.parameter_choices import require_choice


def canonical_gtpo_advantages(
    verdicts: Tensor,
    entropy: Tensor,
    mask: Tensor,
    group_size: int,
    *,
    alpha1: float = 1.0,
    alpha2: float = 0.1,
    norm_set: NormSet = "all",
    floor: float = 1e-8,
) -> Tensor:
    """Standardise entropy-shaped token rewards, right and wrong answers apart.

    Eq. 3, 5 and 6 of Tan et al. (2025, arXiv:2508.04349); see :func:`shaped_rewards` and :func:`outcome_normalized`.
    The GTPO of the SEPA paper differs: :class:`callbacks.tokens.gtpo.GTPO` is a factor that ignores the outcome.

    Args:
        verdicts: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        alpha1: Reward that every token of an answer gets; over its ``own`` set it cancels.
        alpha2: Reward that is shared out by entropy; 0 makes all tokens alike.
        norm_set: Tokens over which rewards are standardised.
        floor: Smallest entropy; a wrong token that is certain takes nearly all of its position's malus.

    Returns:
        Shape ``(B, T)``; zero for completions without a verdict.

    """
    places = number_places(mask)
    entropy, mask = close_gaps(entropy, places), close_gaps(mask, places)
    shaped_values, members = shaped_rewards(verdicts, entropy, mask, group_size, alpha1, alpha2, floor)
    return open_gaps(outcome_normalized(shaped_values, members, norm_set).to(entropy.dtype), places)


class CanonicalGTPO(CreditOperator, reads="correct entropy judged", writes="advantages", rewards="binary"):
    """Replace the advantages by :func:`canonical_gtpo_advantages`. Put it where ``GRPO`` would stand.

    Our sources do not settle which set the authors standardise over. ``own`` follows Eq. 6 to the letter and loses
    the outcome. ``all`` keeps it while fewer than alpha1 / (alpha1 + alpha2) of the group's tokens, 0.91 with the
    paper's, have the same verdict. If all have, half of them get credit of the wrong sign, as
    ``against_outcome_fraction`` shows.

    Args:
        alpha1: Reward that every token of an answer gets. The paper uses 1.
        alpha2: Reward that is shared out by entropy. The paper uses 0.1.
        norm_set: ``all`` or ``own``.
        floor: Smallest entropy. The paper uses 1e-8.

    """

    def __init__(
        self, alpha1: float = 1.0, alpha2: float = 0.1, norm_set: NormSet = "all", floor: float = 1e-8
    ) -> None:
        super().__init__()
        if not (alpha1 >= 0 and alpha2 >= 0 and floor > 0):
            raise ValueError(f"CanonicalGTPO expects alphas >= 0 and floor > 0, got {alpha1}, {alpha2} and {floor}.")
        self.alpha1, self.alpha2, self.floor = alpha1, alpha2, floor
        self.norm_set: NormSet = require_choice("CanonicalGTPO", "norm_set", norm_set, ("own", "all"))

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the share of tokens whose sign is not that of their answer."""
        rollout.advantages = canonical_gtpo_advantages(
            rollout.verdicts, rollout.entropy, rollout.mask, rollout.group_size, **self.arguments
        )
        against = rollout.advantages * (2 * rollout.verdicts - 1)[:, None] < 0
        return {"against_outcome_fraction": masked_mean(against.float(), rollout.mask)}
