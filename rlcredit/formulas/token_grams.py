"""Which n-grams of tokens separate right from wrong answers."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.formulas.contingency_tables import answer_counts
from rlcredit.formulas.masked import following_windows, masked_mean


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
    turns, ids = following_windows(turn, length, fill=-1), following_windows(completion_ids, length)
    starts = token_mask & (turns == turn[..., None]).all(-1)  # of the n-grams, by their first token
    rows = torch.arange(len(turn), device=turn.device)[:, None].expand(turn.shape)[starts]
    grams, marks = torch.cat([rows[:, None] // group_size, ids[starts]], 1).unique(dim=0, return_inverse=True)
    answers = sides.view(2, -1, group_size).sum(-1)[:, grams[:, 0]]
    shares = answer_counts(marks, rows, sides, len(grams)) / answers
    preference = (shares[0] - shares[1]).where((answers > 0).all(0), 0)
    values, size = entropy.double().where(token_mask, 0), (-1, group_size * turn.shape[1])
    mean = masked_mean(values.view(size), token_mask.view(size), dim=1)
    local = following_windows(values, length).mean(-1)[starts]
    saliency = (local / (local + mean[grams[marks, 0]])).where(local > 0, 0)
    scores = torch.zeros_like(values).masked_scatter(starts, preference[marks] * saliency)
    holding = following_windows(pad(scores, (length - 1, 0)), length)[:, : turn.shape[1]]
    return holding.gather(-1, holding.abs().argmax(-1, keepdim=True)).squeeze(-1)
