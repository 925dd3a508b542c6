"""Bootstrap interval over runs, prompts and samples at once."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.sign_flip import fewest_sign_flip_pairs


def hierarchical_interval(outcomes: ArrayLike, level: float = 0.95, draws: int = 10_000, seed: int = 0) -> Interval:
    r"""Return an interval of the mean that holds for new runs, new prompts and new samples alike.

    With run means :math:`\bar y_{r}`, prompt means :math:`\bar y_{p}` and, by the two-way analysis of variance,

    .. math::
        V = V_r + V_p - V_{rp}, \qquad V_r = \frac{MS_r}{R P}, \quad V_p = \frac{MS_p}{R P}, \quad
        V_{rp} = \frac{MS_{rp}}{R P}

    runs and prompts are resampled, their deviations from the mean are added and scaled to the variance V, and the
    quantiles are those of a normal variable at Student's t with Satterthwaite's degrees of freedom. All runs answer
    the same prompts, so a resampled prompt is resampled for all of them: resampling prompts anew within each run would
    hide what a lucky choice of prompts does to every run. Samples are not resampled, for their noise is in the means
    of runs and of prompts already, and :math:`V_{rp}` is taken off because it is in both (Owen, 2007,
    doi:10.1214/07-AOAS122; Cameron, Gelbach and Miller, 2011, doi:10.1198/jbes.2010.07136). Where runs or prompts
    spread less than samples explain, their own variance counts as zero and the interval is on the wide side.

    Meant for 95 %, simulated with eight runs on 512 prompts, it holds 94 % for conditions near 0.97, 94 to 95 % for
    paired differences, and 98 % for differences that are sampling noise alone. With 64 prompts of one condition it
    holds 92 %, for a few hard prompts are then easily missed. Prompts and samples resampled within runs, instead, hold
    81 to 100 %.

    Args:
        outcomes: 0/1 verdicts of the same prompts in every run, shape ``(R, P, S)`` of runs, prompts and samples; or
            differences of two such arrays with common seeds and prompts. For a fixed set of prompts, or prompts that
            differ between runs, take the interval of ``paired_t_test`` over the means of runs.
        level: Confidence level of the interval.
        draws: Number of resamples.
        seed: Seed of the resamples.

    Raises:
        ValueError: another shape, fewer runs or prompts than the level needs, or a missing verdict.

    Example:
        >>> verdicts = np.random.default_rng(0).random((8, 64, 4)) < 0.9
        >>> interval = hierarchical_interval(verdicts)
        >>> interval.low < 0.9 < interval.high
        True

    """
    table = _run_prompt_means(outcomes, fewest_sign_flip_pairs(1 - level))
    mean, sizes = table.mean(), table.shape
    runs, prompts = (table.mean(axis) - mean for axis in (1, 0))
    within = table - mean - runs[:, None] - prompts
    dfs = np.array([sizes[0] - 1, sizes[1] - 1, (sizes[0] - 1) * (sizes[1] - 1)])
    parts = np.array([(runs**2).sum() / sizes[0], (prompts**2).sum() / sizes[1], (within**2).sum() / table.size]) / dfs
    variance = max(parts[0], parts[1], parts[0] + parts[1] - parts[2])
    if variance == 0:
        return Interval(float(mean), float(mean), level)
    df = variance**2 / (parts**2 / dfs).sum()
    random = np.random.default_rng(seed)
    resampled = _resampled_means(runs, draws, random) + _resampled_means(prompts, draws, random)
    tail = stats.norm.sf(stats.t.ppf((1 + level) / 2, df))
    low, high = mean + math.sqrt(variance / (parts[0] + parts[1])) * np.quantile(resampled, [tail, 1 - tail])
    return Interval(float(low), float(high), level)


def _run_prompt_means(outcomes: ArrayLike, fewest: int) -> NDArray[np.float64]:
    """Return the means over samples, shape ``(R, P)``, or refuse incomplete outcomes."""
    array = np.asarray(outcomes, dtype=np.float64)
    if array.ndim != 3 or array.shape[0] < fewest or array.shape[1] < fewest:
        raise ValueError(
            f"A hierarchical bootstrap needs outcomes of shape (runs, prompts, samples) with at least {fewest} runs "
            f"and prompts, got shape {array.shape}. Run more seeds, or test the means of runs with a paired t."
        )
    if not np.isfinite(array).all():
        raise ValueError("A hierarchical bootstrap needs finite outcomes, got some missing. Evaluate those prompts.")
    return array.mean(-1)


def _resampled_means(deviations: NDArray[np.float64], draws: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return means of resampled deviations, scaled to the spread that means of new ones would have."""
    size = len(deviations)
    rows = max(1, 1_000_000 // size)  # at a time, to bound memory
    blocks = [min(rows, draws - start) for start in range(0, draws, rows)]
    means = [deviations[random.integers(size, size=(block, size))].mean(1) for block in blocks]
    return np.concatenate(means) * math.sqrt(size / (size - 1))
