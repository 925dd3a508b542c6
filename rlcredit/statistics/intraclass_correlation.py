"""How much the outcomes of one group resemble each other."""

import numpy as np
from numpy.typing import ArrayLike


def intraclass_correlation(outcomes: ArrayLike) -> float:
    r"""Estimate the correlation of two outcomes of one prompt, by analysis of variance.

    .. math:: \hat\rho = \frac{MS_b - MS_w}{MS_b + (G - 1) MS_w}

    With 0/1 outcomes it is the variance of the prompts' success rates over the variance of all outcomes: 1 if every
    prompt is solved always or never, 0 if all prompts are equally hard. The estimate may be as low as -1/(G - 1) by
    chance and is not cut off, so that its mean stays right (Ridout, Demetrio and Firth, 1999,
    doi:10.1111/j.0006-341X.1999.00137.x). Outcomes without any spread give zero.

    Args:
        outcomes: 0/1 or any numbers, shape ``(P, G)``: prompts, and samples of each; both at least two.

    Raises:
        ValueError: another shape.

    Example:
        >>> intraclass_correlation([[1, 1], [0, 0]]), round(intraclass_correlation([[1, 1, 0], [1, 0, 0]]), 4)
        (1.0, -0.2)

    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(f"A correlation within prompts needs shape (P, G), both at least 2, got {table.shape}.")
    prompts, group = table.shape
    means = table.mean(1)
    between = group * means.var(ddof=1)
    within = ((table - means[:, None]) ** 2).sum() / (prompts * (group - 1))
    spread = between + (group - 1) * within
    return float((between - within) / spread) if spread > 0 else 0.0
