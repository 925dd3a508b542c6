"""GRPO-S: a whole completion's entropy decides its share of the bonus."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.outcome_sets import NormSet, outcome_normalized, shaped_rewards
from rlcredit.formulas.parameter_choices import require_choice


def grpo_s_advantages(
    verdicts: Tensor,
    entropy: Tensor,
    mask: Tensor,
    group_size: int,
    *,
    beta1: float = 1.0,
    beta2: float = 0.1,
    norm_set: NormSet = "all",
    floor: float = 1e-8,
) -> Tensor:
    """Standardise rewards shaped by each completion's mean entropy, right and wrong answers apart.

    Tan et al. (2025, arXiv:2508.04349): canonical GTPO with completions in the place of tokens; see
    :func:`shaped_rewards` and :func:`outcome_normalized`.

    Args:
        verdicts: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        beta1: Reward that every answer gets; over its ``own`` set it cancels.
        beta2: Reward that is shared out by entropy.
        norm_set: Completions over which rewards are standardised.
        floor: Smallest mean entropy.

    Returns:
        Shape ``(B,)``; zero for completions without a verdict.

    """
    means = masked_mean(entropy, mask, dim=-1, keepdim=True)
    row_mask = mask.any(-1, keepdim=True)
    shaped_values, members = shaped_rewards(verdicts, means, row_mask, group_size, beta1, beta2, floor)
    return outcome_normalized(shaped_values, members, norm_set).squeeze(-1).to(entropy.dtype)


class GRPOS(CreditOperator, reads="correct entropy judged", writes="advantages", rewards="binary"):
    """Give every token of a completion :func:`grpo_s_advantages`.

    The paper's loss weighs a completion by the mean ratio of its tokens, which on policy is one.

    Args:
        beta1: Reward that every answer gets. The paper uses 1.
        beta2: Reward that is shared out by entropy. The paper uses 0.1.
        norm_set: ``all`` keeps the outcome of mixed groups, ``own`` follows the equation to the letter and loses it.
        floor: Smallest mean entropy. The paper uses 1e-8.

    """

    def __init__(self, beta1: float = 1.0, beta2: float = 0.1, norm_set: NormSet = "all", floor: float = 1e-8) -> None:
        super().__init__()
        if not (beta1 >= 0 and beta2 >= 0 and floor > 0):
            raise ValueError(f"GRPOS expects betas >= 0 and floor > 0, got {beta1}, {beta2} and {floor}.")
        self.beta1, self.beta2, self.floor = beta1, beta2, floor
        self.norm_set: NormSet = require_choice("GRPOS", "norm_set", norm_set, ("own", "all"))

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size and the share whose sign is not that of the answer."""
        advantages = grpo_s_advantages(
            rollout.verdicts, rollout.entropy, rollout.mask, rollout.group_size, **self.arguments
        )
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        against = (advantages * (2 * rollout.verdicts - 1) < 0).float().mean()
        return {"advantage_max": advantages.abs().max(), "against_outcome_fraction": against}
