"""Self-distilled credit: a token is as good as a hint makes it likely."""

from typing import get_args

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import GroupChoice, chosen_rows
from rlcredit.formulas.masked import damped_weights, masked_mean
from rlcredit.formulas.parameter_choices import require_choice

ANSWER_HINT = "\n\nThe answer is {answer}."
"""Text behind a question that tells its answer."""


def distilled_credit(
    hinted_logprobs: Tensor, logprobs: Tensor, hinted_entropy: Tensor, mask: Tensor, scale: float, beta: float
) -> Tensor:
    r"""Credit each token by what a hint changes about its log-probability.

    .. math:: A_t = \alpha\, w_t \bigl(\log \pi(y_t \mid x, h, y_{<t}) - \log \pi(y_t \mid x, y_{<t})\bigr), \qquad
        w_t \propto e^{-\beta H(\pi(\cdot \mid x, h, y_{<t}))}

    the weights of a completion averaging to one.

    Args:
        hinted_logprobs: Log-probability of each token after the hint, shape ``(B, T)``.
        logprobs: Log-probability of each token without it, shape ``(B, T)``.
        hinted_entropy: Entropy in nats after the hint, shape ``(B, T)``.
        mask: True on tokens that get credit, shape ``(B, T)``.
        scale: Scale :math:`\alpha` of the credit.
        beta: Strength :math:`\beta` with which tokens count less where the hint leaves doubt; 0 weights all alike.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> import torch
        >>> hinted, plain = torch.tensor([[-0.5, -3.0]]), torch.tensor([[-1.0, -1.0]])
        >>> distilled_credit(hinted, plain, torch.zeros(1, 2), plain < 0, scale=0.5, beta=1.0)
        tensor([[ 0.2500, -1.0000]])

    """
    return (scale * damped_weights(hinted_entropy, mask, beta) * (hinted_logprobs - logprobs)).where(mask, 0)


class SelfDistillation(
    CreditOperator,
    reads="advantages completion_ids correct judged lookahead old_logprobs prompt_ids",
    writes="advantages",
    neutral={"scale": 0.0},
    costly=True,
    rewards="binary",
):
    r"""Add :func:`distilled_credit` where no completion of a group is right, with the answer as the hint.

    I-SDPO (Zhang et al., 2026, arXiv:2608.12957) on the base of SDPO (Hübotter et al., 2026, arXiv:2601.20802), a
    reconstruction from abstracts and summaries. In groups of wrong answers flat credit is zero, so that this is all
    there is; they grow fewer as the policy learns. A scoring pass over them, nothing is decoded.

    Credit is not centred: its expectation is minus the divergence from the hinted policy, which it is to lower. It has
    no limit of its own; put ``AdvantageClip`` below. The papers compare whole distributions, with a teacher that lags
    behind; here the sampled token and the policy itself are compared.

    Args:
        hint: Text behind the question, in the same turn; ``{answer}`` stands for the reference answer.
        groups: Groups that get the credit: ``all_wrong``, as in I-SDPO, or ``all``, as in SDPO.
        scale: Scale of the credit.
        beta: Strength with which tokens count less where the hint leaves doubt; 0 weights all alike.

    """

    def __init__(
        self, hint: str = ANSWER_HINT, groups: GroupChoice = "all_wrong", scale: float = 1.0, beta: float = 1.0
    ) -> None:
        super().__init__()
        if not (scale >= 0 and beta >= 0):
            raise ValueError(f"SelfDistillation expects scale >= 0 and beta >= 0, got {scale:g} and {beta:g}.")
        self.hint = hint
        self.groups: GroupChoice = require_choice("SelfDistillation", "groups", groups, get_args(GroupChoice))
        self.scale = scale
        self.beta = beta

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the share of completions read, the mean shift, tokens that the hint speaks against, and the size."""
        row_mask = chosen_rows(rollout.verdicts, rollout.group_size, self.groups)
        mask = rollout.mask & row_mask[:, None]
        logprobs, entropy = rollout.lookahead.score_with_hint(rollout, row_mask, self.hint)
        credit = distilled_credit(logprobs, rollout.old_logprobs, entropy, mask, self.scale, self.beta)
        rollout.advantages = rollout.advantages + credit
        shift = logprobs - rollout.old_logprobs
        return {
            "read_fraction": row_mask.float().mean(),
            "shift": masked_mean(shift, mask),
            "less_likely": masked_mean((shift < 0).float(), mask),
            "size": masked_mean(credit.abs(), mask),
        }
