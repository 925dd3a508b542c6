"""How well scores find what they should: rank correlation, area under the curve and captured mass."""

import numpy as np
from torch import Tensor


def signal_rank_correlation(first: Tensor, second: Tensor) -> float:
    """Return Spearman's correlation; zero where one of the two does not vary.

    Args:
        first: shape ``(N,)``.
        second: shape ``(N,)``.

    Example:
        >>> import torch
        >>> signal_rank_correlation(torch.tensor([1.0, 2.0, 9.0]), torch.tensor([0.3, 0.2, 0.1]))
        -1.0

    """
    from scipy import stats  # noqa: PLC0415

    ranks = [stats.rankdata(values.double().numpy()) for values in (first, second)]
    if min(np.ptp(r) for r in ranks) == 0:
        return 0.0
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


def roc_area_under_curve(scores: Tensor, positive: Tensor) -> float:
    """Return the chance that a positive scores higher than a negative, ties counting half; one half without either.

    Args:
        scores: shape ``(N,)``.
        positive: shape ``(N,)`` bool.

    Example:
        >>> import torch
        >>> roc_area_under_curve(torch.tensor([0.9, 0.1, 0.1]), torch.tensor([True, True, False]))
        0.75

    """
    from scipy import stats  # noqa: PLC0415

    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return 0.5
    ranks = stats.rankdata(scores.double().numpy())
    return float((ranks[positive.numpy()].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def captured_mass(mass: Tensor, scores: Tensor, share: float) -> float:
    """Return which part of the mass lies on the share of positions with the highest scores.

    Positions with equal scores at the edge count in part, as if drawn by lot: a score that is constant captures
    ``share`` of the mass.

    Args:
        mass: non-negative, shape ``(N,)``.
        scores: shape ``(N,)``.
        share: in [0, 1].

    Example:
        >>> import torch
        >>> captured_mass(torch.tensor([3.0, 1.0, 0.0, 0.0]), torch.tensor([0.9, 0.2, 0.2, 0.1]), share=0.5)
        0.875

    """
    weights, values = mass.double().numpy(), scores.double().numpy()
    if weights.sum() == 0:
        return 0.0
    count = share * len(values)
    edge = np.sort(values)[::-1][min(len(values) - 1, int(np.ceil(count)) - 1)] if count > 0 else np.inf
    above, tied = values > edge, values == edge
    tied_share = (count - above.sum()) / tied.sum() if tied.any() else 0.0
    return float((weights[above].sum() + tied_share * weights[tied].sum()) / weights.sum())
