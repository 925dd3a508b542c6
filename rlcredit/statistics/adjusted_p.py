"""p-values adjusted for a family of tests."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm_adjusted_p(ps: ArrayLike) -> NDArray[np.float64]:
    r"""Adjust p-values so that the chance of any false finding in the family stays below alpha.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})

    Holds whatever the dependence between tests, and so where all conditions share one baseline. One test is left as it
    is.

    Args:
        ps: P-value of each condition, shape ``(m,)``.

    Returns:
        In the order given; compare each with alpha.

    References:
        Holm, 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.

    Example:
        >>> holm_adjusted_p([0.04, 0.01, 0.03]).tolist()  # 0.01 x 3, then 0.03 x 2; 0.04 x 1 may not fall below these
        [0.06, 0.03, 0.06]

    """
    row = np.asarray(ps, dtype=np.float64)
    order = row.argsort()
    holm_ps = np.empty_like(row)
    holm_ps[order] = np.maximum.accumulate(row[order] * np.arange(len(row), 0, -1)).clip(max=1)
    return holm_ps


def benjamini_hochberg_adjusted_p(ps: ArrayLike) -> NDArray[np.float64]:
    r"""Adjust p-values so that the expected share of false findings stays below alpha.

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min(1, \tfrac{m}{j}\, p_{(j)})

    For screening many conditions; a claim about one of them wants ``holm_adjusted_p``. Assumes independent or
    positively dependent tests (Benjamini and Hochberg, 1995, doi:10.1111/j.2517-6161.1995.tb02031.x).

    Args:
        ps: P-value of each condition, shape ``(m,)``.

    Returns:
        In the order given; compare each with alpha.

    Example:
        >>> benjamini_hochberg_adjusted_p([0.04, 0.01, 0.03]).tolist()  # 0.01 x 3/1, 0.03 x 3/2 is more than 0.04 x 3/3
        [0.04, 0.03, 0.04]

    """
    from scipy import stats  # noqa: PLC0415

    return np.asarray(stats.false_discovery_control(ps, method="bh"), dtype=np.float64)
