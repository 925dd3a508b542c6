"""Monte-Carlo estimates of the credit of tokens, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class TrueCredit:
    r"""Monte-Carlo credit of every token of some completions.

    Attributes:
        rows: Row numbers in the rollout, N of them.
        values: :math:`V_t`, share right among continuations of the first t tokens; from the end of the
            completion on the verdict, shape ``(N, T + 1)`` float64.
        credit: :math:`A^*_t = V_{t+1} - V_t` on token t, zero outside the mask, shape ``(N, T)`` float64.
        error: Standard error of the credit, from differences under common random numbers, shape ``(N, T)`` float64.
        square: Unbiased estimate of :math:`A^{*2}_t`: the product of the estimates from two halves of the samples,
            shape ``(N, T)`` float64.
        p: P-value of no credit, by the exact sign test on the continuations that the token made right and wrong, shape
            ``(N, T)`` float64.
        mask: True on sampled tokens, shape ``(N, T)``.
        information: What the token says about the verdict, in nats; see :func:`verdict_information`, shape ``(N, T)``
            float64.

    """

    rows: Sequence[int]
    values: Tensor
    credit: Tensor
    error: Tensor
    square: Tensor
    p: Tensor
    mask: Tensor
    information: Tensor


def true_credit(rows: Sequence[int], right: Tensor, mask: Tensor) -> TrueCredit:
    """Return the credit of every token from the outcomes of its prefixes' continuations.

    Args:
        rows: Row numbers in the rollout, N of them.
        right: One where continuation m of the first t tokens is right, zero where it is wrong, shape ``(N, T + 1, M)``,
            M at least 2.
        mask: True on sampled tokens, shape ``(N, T)``.

    """
    from scipy.stats import binom  # noqa: PLC0415

    differences, samples = right.diff(dim=1), right.shape[-1]
    wins, losses = (differences > 0).sum(-1), (differences < 0).sum(-1)
    p = torch.from_numpy(2 * binom.cdf(torch.minimum(wins, losses), wins + losses, 0.5)).clamp(max=1)
    halves = [differences[..., start::2].mean(-1) for start in (0, 1)]
    return TrueCredit(
        rows=rows,
        values=right.mean(-1),
        credit=differences.mean(-1).where(mask, 0),
        error=(differences.var(-1, correction=1) / samples).sqrt().where(mask, 0),
        square=(halves[0] * halves[1]).where(mask, 0),
        p=p.where(mask, 1),
        mask=mask,
        information=verdict_information(right).where(mask, 0),
    )


def verdict_information(right: Tensor) -> Tensor:
    r"""Return the distance by which each token moves the distribution of the verdict.

    .. math:: i_t = \mathrm{KL}\bigl(P(r \mid s_t, o_t) \,\|\, P(r \mid s_t)\bigr), \qquad
        \mathbb{E}_{o_t}[i_t] = I(o_t; r \mid s_t) \le H_t

    The mean over tokens is the conditional mutual information that He et al. (2026, arXiv:2604.11056) bound by the
    entropy. Values have half a success and half a failure added, and the estimate from all samples is extrapolated
    beyond those from two halves: without credit it has mean zero, but for what is left at values close to 0 and 1, and
    single ones may be negative.

    Args:
        right: One where continuation m of the first t tokens is right, zero where it is wrong, shape ``(N, T + 1, M)``,
            M at least 2.

    Returns:
        In nats, shape ``(N, T)`` float64.

    """

    def divergence(outcomes: Tensor) -> Tensor:
        value = (outcomes.sum(-1) + 0.5) / (outcomes.shape[-1] + 1)
        new, old = value[:, 1:], value[:, :-1]
        return new * (new / old).log() + (1 - new) * ((1 - new) / (1 - old)).log()

    halves = [divergence(right[..., start::2]) for start in (0, 1)]
    return 2 * divergence(right) - (halves[0] + halves[1]) / 2
