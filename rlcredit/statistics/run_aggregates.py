"""One number from the values of many runs, or of one run over its steps (Agarwal et al., 2021, arXiv:2108.13264)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


def interquartile_mean(scores: ArrayLike) -> float:
    """Average the middle half of all scores.

    A quarter of the scores, rounded down, is left out at each end: one run that collapsed does not move it, and unlike
    the median it uses half of the runs. Fewer than four scores are all kept.

    Args:
        scores: One score per run, or per run and task, which are pooled as in the paper; any shape.

    Example:
        >>> round(interquartile_mean([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 1.0]), 4)  # of 0.6, 0.7, 0.8 and 0.9
        0.75

    """
    return float(stats.trim_mean(np.ravel(scores), 0.25))


def probability_of_improvement(condition: ArrayLike, baseline: ArrayLike) -> float:
    r"""Return the share of pairs in which a run of a condition beats one of the baseline, a tie counting one half.

    .. math:: \frac{1}{N M} \sum_{i=1}^{N} \sum_{j=1}^{M} \left(1[x_i > y_j] + \tfrac12 1[x_i = y_j]\right)

    The Mann-Whitney U over the number of pairs: 1/2 says that neither tends to be better. It says how often, not by
    how much. With several tasks it is the mean over tasks, each compared only with itself.

    Args:
        condition: One score per run of the condition, shape ``(N,)``, or per run and task, ``(N, tasks)``.
        baseline: One score per run of the baseline, ``(M,)``, or per run and task, ``(M, tasks)``.

    Example:
        >>> probability_of_improvement([0.6, 0.7], [0.6, 0.5])  # 0.6 ties with 0.6; the three other pairs are won
        0.875

    """
    pairs = np.asarray(condition, dtype=np.float64)[:, None] - np.asarray(baseline, dtype=np.float64)[None, :]
    return float((1 + np.sign(pairs).mean()) / 2)


def learning_curve_area(steps: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
    r"""Average a curve over its steps by the trapezoid rule.

    .. math:: \frac{1}{x_n - x_1} \sum_{i=1}^{n-1} (x_{i+1} - x_i) \frac{y_i + y_{i+1}}{2}

    The area is in the unit of the curve, so that curves over different ranges of steps can be read side by side. Steps
    need not be equally spaced; a flat curve has its own height as its area.

    Args:
        steps: Steps, increasing, shape ``(n,)``.
        values: Values of the curve at these steps, for instance pass@1, shape ``(..., n)``.

    Returns:
        One area per curve, shape ``(...)``.

    Raises:
        ValueError: fewer than two steps, or steps that do not increase.

    Example:
        >>> round(float(learning_curve_area([0, 10, 40], [0.0, 0.4, 0.4])), 4)  # (2 + 12) / 40
        0.35

    """
    positions = np.asarray(steps, dtype=np.float64)
    if len(positions) < 2 or (np.diff(positions) <= 0).any():
        raise ValueError(
            f"An area needs at least two increasing steps, got {positions.tolist()}. Sort them, drop repeats."
        )
    return np.trapezoid(np.asarray(values, dtype=np.float64), positions, axis=-1) / (positions[-1] - positions[0])


def largest_fall(values: ArrayLike) -> float:
    """Return the largest fall of a curve below the highest point before.

    Args:
        values: Values of the curve in their order, shape ``(n,)``.

    Example:
        >>> largest_fall([0.25, 0.75, 0.5, 1.0, 0.875]), largest_fall([0.0, 0.5])
        (0.25, 0.0)

    """
    row = np.asarray(values, dtype=np.float64)
    return float((np.maximum.accumulate(row) - row).max())


def steps_to_threshold(curve: Mapping[int, float], threshold: float) -> float:
    """Return the step at which a held-out curve first reaches a value, interpolating between evaluations.

    Example:
        >>> steps_to_threshold({0: 0.25, 10: 0.5, 20: 1.0}, 0.75), steps_to_threshold({0: 0.25, 10: 0.5}, 0.75)
        (15.0, inf)

    """
    point: tuple[int, float] | None = None
    for step, value in sorted(curve.items()):
        if value >= threshold:
            if point is None:
                return float(step)
            return point[0] + (step - point[0]) * (threshold - point[1]) / (value - point[1])
        point = (step, value)
    return float("inf")
