"""STRIDE: n-grams that separate right from wrong answers gain or lose credit, most where the policy was undecided."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.contingency_tables import answer_counts
from rlcredit.formulas.masked import masked_mean


def gram_scores(
    verdicts: Tensor, completion_ids: Tensor, entropy: Tensor, turn: Tensor, group_size: int, length: int
) -> Tensor:
    r"""Return the strength with which n-grams that hold a token speak for right answers, between -1 and 1.

    .. math:: z = \Bigl(\frac{R_g}{R} - \frac{W_g}{W}\Bigr)\, \frac{h}{h + \bar H}

    R and W count the right and wrong answers of the group, :math:`R_g` and :math:`W_g` those among them that contain
    the n-gram g. h is the mean entropy of the n tokens where it stands, :math:`\bar H` the one of all tokens of the
    group's right and wrong answers. Of the n-grams that hold a token, the one with the largest size of z counts.

    Zhao et al. (2026, arXiv:2606.15866): a reconstruction from the abstract, which names the contrast of right and
    wrong answers per n-gram and its combination with entropy. Both factors, the maximum and n are ours.

    Args:
        verdicts: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        completion_ids: Token ids, shape ``(B, T)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``; no n-gram leaves its turn.
        group_size: Completions per prompt, G.
        length: Tokens n of an n-gram.

    Returns:
        Shape ``(B, T)`` float64; zero on answers that are neither, and in groups without right or without wrong ones.

    Example:
        >>> ids, turn = torch.tensor([[1, 2, 3], [4, 2, 3]]), torch.zeros(2, 3, dtype=torch.long)
        >>> gram_scores(torch.tensor([1.0, 0.0]), ids, torch.ones(2, 3), turn, group_size=2, length=2)
        tensor([[ 0.5000,  0.5000,  0.0000],
                [-0.5000, -0.5000,  0.0000]], dtype=torch.float64)

    """
    sides = torch.stack([verdicts == 1, verdicts == 0])
    token_mask = (turn >= 0) & sides.any(0)[:, None]
    turns, ids = (pad(values, (0, length), value=-1).unfold(-1, length, 1)[:, :-1] for values in (turn, completion_ids))
    starts = token_mask & (turns == turn[..., None]).all(-1)  # of the n-grams, by their first token
    rows = torch.arange(len(turn), device=turn.device)[:, None].expand(turn.shape)[starts]
    grams, marks = torch.cat([rows[:, None] // group_size, ids[starts]], 1).unique(dim=0, return_inverse=True)
    answers = sides.view(2, -1, group_size).sum(-1)[:, grams[:, 0]]
    shares = answer_counts(marks, rows, sides, len(grams)) / answers
    preference = (shares[0] - shares[1]).where((answers > 0).all(0), 0)
    values = entropy.double().where(token_mask, 0)
    mean = masked_mean(values.view(-1, group_size * turn.shape[1]), token_mask.view(-1, group_size * turn.shape[1]), 1)
    local = pad(values, (0, length)).unfold(-1, length, 1)[:, :-1].mean(-1)[starts]
    saliency = (local / (local + mean[grams[marks, 0]])).where(local > 0, 0)
    scores = torch.zeros_like(values).masked_scatter(starts, preference[marks] * saliency)
    holding = pad(scores, (length, 0)).unfold(-1, length, 1)[:, 1:]
    return holding.gather(-1, holding.abs().argmax(-1, keepdim=True)).squeeze(-1)


class STRIDE(
    CreditOperator,
    reads="advantages completion_ids correct judged entropy turn",
    writes="advantages",
    neutral={"strength": 0.0},
    rewards="binary",
):
    r"""Add to each advantage its size times ``strength`` times :func:`gram_scores`: :math:`A + \lambda |A| z`.

    An n-gram of right answers gains credit in a right answer, and takes blame away in a wrong one. No sign flips.
    With a ``strength`` below zero the same n-grams get weights of the same sizes in the opposite direction, which is a
    control: what both directions gain is not due to what separates right from wrong answers.

    Args:
        strength: Factor :math:`\lambda` from -1 to 1; 0 is the identity. The abstract names none.
        length: Tokens n of an n-gram; 1 compares single tokens, as ``KTAE`` does. The abstract names none.

    """

    def __init__(self, strength: float = 1.0, length: int = 3) -> None:
        super().__init__()
        if not (-1 <= strength <= 1 and length >= 1):
            raise ValueError(
                f"STRIDE expects strength in [-1, 1] and length >= 1, got {strength} and {length}. A larger strength "
                "would turn credit into blame."
            )
        self.strength, self.length = strength, length

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the mean size of the change relative to credit, and the share of tokens whose credit shrinks."""
        ids, entropy, turn = rollout.completion_ids, rollout.entropy, rollout.turn
        scores = gram_scores(rollout.verdicts, ids, entropy, turn, rollout.group_size, self.length)
        old_credit, change = rollout.advantages, self.strength * scores
        rollout.advantages = (old_credit + old_credit.abs() * change).to(old_credit.dtype)
        credit_mask = rollout.judged_mask & (old_credit != 0)
        return {
            "change_mean": masked_mean(change.abs(), credit_mask),
            "shrunk_fraction": masked_mean((change * old_credit < 0).double(), credit_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """No score exceeds one."""
        return (1 + abs(self.strength)) * limit
