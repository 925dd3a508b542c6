"""Unbiased pass@k (Chen et al., 2021, arXiv:2107.03374)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(completions: int, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    r"""Estimate the chance that at least one of k completions is right, from n of which c were.

    .. math:: 1 - \binom{n-c}{k} \Big/ \binom{n}{k} = 1 - \prod_{i=n-c+1}^{n} \left(1 - \frac{k}{i}\right)

    Args:
        completions: n, at least k.
        correct: c per question, any shape.
        k: how many may be tried.

    Returns:
        One estimate per question, the shape of ``correct``; pass@1 is c / n.

    Raises:
        ValueError: fewer completions than k.

    Example:
        >>> pass_at_k(8, [2, 0], k=4).round(6).tolist()
        [0.785714, 0.0]

    """
    if not 1 <= k <= completions:
        raise ValueError(f"pass@{k} needs at least {k} completions per question, got {completions}.")
    wrong = completions - np.asarray(correct, dtype=np.float64)[..., None]
    factors = np.arange(1, completions + 1)
    return 1 - np.where(factors > wrong, 1 - k / factors, 1.0).clip(min=0).prod(-1)
