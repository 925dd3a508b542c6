"""Monte-Carlo estimates of the credit of tokens, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.turns import spread_turns, sum_turns


@dataclass
class TrueCredit:
    r"""Monte-Carlo credit of every token of some completions, or of every turn of some episodes.

    Where turns have credit, T is the number of turns, and a token below is a turn.

    Attributes:
        rows: Row numbers in the rollout, N of them.
        values: :math:`V_t`, share right among continuations of the first t tokens, or their mean reward; from the end
            of the completion on what it got, shape ``(N, T + 1)`` float64.
        credit: :math:`A^*_t = V_{t+1} - V_t` on token t, zero outside the mask, shape ``(N, T)`` float64.
        error: Standard error of the credit, from differences under common random numbers, shape ``(N, T)`` float64.
        square: Unbiased estimate of :math:`A^{*2}_t`: the product of the estimates from two halves of the samples,
            shape ``(N, T)`` float64.
        p: P-value of no credit, by the exact sign test on the continuations that the token made right and wrong, or of
            real rewards by Student's t-test, shape ``(N, T)`` float64.
        mask: True on sampled tokens, shape ``(N, T)``.
        information: What the token says about the verdict, in nats; see :func:`verdict_information`, shape ``(N, T)``
            float64; None of real rewards.
        turn: Number of the turn of each token, -1 elsewhere, where turns have credit, shape ``(N, W)``; else None.

    """

    rows: Sequence[int]
    values: Tensor
    credit: Tensor
    error: Tensor
    square: Tensor
    p: Tensor
    mask: Tensor
    information: Tensor | None
    turn: Tensor | None = None

    def sum_units(self, values: Tensor) -> Tensor:
        """Return the sum of values of tokens, shape ``(N, W)``, over what has credit: themselves, or their turns."""
        return values if self.turn is None else sum_turns(values.double(), self.turn, self.mask.shape[1])

    def average_units(self, values: Tensor) -> Tensor:
        """Return the mean of values of tokens, shape ``(N, W)``, over what has credit; of equal ones exactly theirs."""
        return self.sum_units(values) / self.sum_units(torch.ones_like(values)).clamp(min=1)

    def spread_units(self, values: Tensor) -> Tensor:
        """Return the value of its turn on every token where turns have credit, shape ``(N, W)``; else the values."""
        return values if self.turn is None else spread_turns(values, self.turn)

    def is_of(self, rollout: Rollout) -> bool:
        """Whether a rollout has the completions that this is the credit of, as far as their lengths tell."""
        shape, facts = (self.mask, rollout.mask) if self.turn is None else (self.turn, rollout.turn)
        return torch.equal(shape, facts[self.rows].to(shape.device))


def true_credit(
    rows: Sequence[int], right: Tensor, mask: Tensor, turn: Tensor | None = None, is_graded: bool = False
) -> TrueCredit:
    """Return the credit of every token, or turn, from the outcomes of its prefixes' continuations.

    Args:
        rows: Row numbers in the rollout, N of them.
        right: One where continuation m of the first t tokens is right, zero where it is wrong, or its reward, shape
            ``(N, T + 1, M)``, M at least 2.
        mask: True on sampled tokens, or on turns, shape ``(N, T)``.
        turn: Number of the turn of each token, -1 elsewhere, shape ``(N, W)``; None if tokens have credit.
        is_graded: Whether outcomes are real rewards.

    """
    differences, samples = right.diff(dim=1), right.shape[-1]
    p = mean_test_p(differences) if is_graded else sign_test_p(differences)
    halves = [differences[..., start::2].mean(-1) for start in (0, 1)]
    return TrueCredit(
        rows=rows,
        values=right.mean(-1),
        credit=differences.mean(-1).where(mask, 0),
        error=(differences.var(-1, correction=1) / samples).sqrt().where(mask, 0),
        square=(halves[0] * halves[1]).where(mask, 0),
        p=p.where(mask, 1),
        mask=mask,
        information=None if is_graded else verdict_information(right).where(mask, 0),
        turn=turn,
    )


def sign_test_p(differences: Tensor) -> Tensor:
    """Return the p-value of as many differences above zero as below, by the exact test, the last dimension left out.

    Example:
        >>> sign_test_p(torch.tensor([1.0, 1.0, 1.0, 0.0, -1.0]))
        tensor(0.6250, dtype=torch.float64)

    """
    from scipy.stats import binom  # noqa: PLC0415

    wins, losses = (differences > 0).sum(-1), (differences < 0).sum(-1)
    return torch.as_tensor(2 * binom.cdf(torch.minimum(wins, losses), wins + losses, 0.5)).clamp(max=1)


def mean_test_p(differences: Tensor) -> Tensor:
    """Return the p-value of a mean of zero, by Student's t-test; equal differences have 1 at zero, and 0 elsewhere.

    Example:
        >>> mean_test_p(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))
        tensor([0.0742, 1.0000], dtype=torch.float64)

    """
    from scipy.stats import t  # noqa: PLC0415

    samples = differences.shape[-1]
    distance = (differences.mean(-1).abs() / (differences.var(-1) / samples).sqrt()).nan_to_num(0, posinf=torch.inf)
    return torch.as_tensor(2 * t.sf(distance, samples - 1))


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
