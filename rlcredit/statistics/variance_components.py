"""Sources of the variance of outcomes: steps, prompts, conditions, runs, and the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlcredit.statistics.finite_sample import finite_sample

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class VarianceComponents:
    """Hold the variance that each factor adds to an outcome.

    Args:
        variances: Variance by factor, and ``residual``, in the squared unit of the outcomes.
        truncated: Factors whose estimate was negative and is set to zero: less spread than the residual explains.

    """

    variances: dict[str, float]
    truncated: tuple[str, ...]

    @property
    def shares(self) -> dict[str, float]:
        """Each variance over their sum; zero where nothing varies."""
        total = sum(self.variances.values())
        return {name: variance / total if total > 0 else 0.0 for name, variance in self.variances.items()}


def variance_components(outcomes: ArrayLike, factors: Mapping[str, ArrayLike]) -> VarianceComponents:
    r"""Split the variance of outcomes into that of labelled factors, by analysis of variance.

    .. math:: E[MS_T] = \sigma^2_{residual} + \sum_{U \text{ within } T} n_U \sigma^2_U

    for additive random effects, where U runs over T and all factors nested in it and n_U counts rows per level of U:
    solved from the finest factor up (Searle, Casella and McCulloch, 1992, doi:10.1002/9780470316856, chapter 4).
    Unbiased whatever the distribution, and equal to restricted maximum likelihood where no estimate is negative.
    Nesting is read from the labels: seeds named alike in every condition are crossed with conditions, seeds with names
    of their own are nested in them; likewise prompts in steps. Interactions count as residual.

    Args:
        outcomes: Outcome of each row, shape ``(N,)``.
        factors: Labels by name, each of shape ``(N,)``; for an array of outcomes, ``np.indices(shape)``, raveled.

    Raises:
        ValueError: a factor without two levels, a table that is not balanced, or no row left for the residual.

    Example:
        >>> steps, runs = np.indices((3, 2)).reshape(2, -1)
        >>> components = variance_components([0.1, 0.2, 0.5, 0.6, 0.9, 1.0], {"step": steps, "run": runs})
        >>> {name: round(variance, 4) for name, variance in components.variances.items()}
        {'step': 0.16, 'run': 0.005, 'residual': 0.0}

    """
    values = finite_sample(outcomes, fewest=2, purpose="A variance decomposition")
    codes = {name: np.unique(np.asarray(labels), return_inverse=True)[1] for name, labels in factors.items()}
    codes = dict(sorted(codes.items(), key=lambda item: item[1].max()))  # outer factors before those nested in them
    outer = _outer_factors(codes)
    squares, dfs = _sums_of_squares(values, codes, outer)
    if dfs["residual"] < 1:
        raise ValueError(f"{len(values)} outcomes leave nothing for the residual of {list(factors)}. Drop a factor.")
    raw = {"residual": squares["residual"] / dfs["residual"]}
    rows = {name: len(values) / (code.max() + 1) for name, code in codes.items()}
    for name in reversed(codes):
        inner_variance = sum(rows[inner] * raw[inner] for inner in raw if name in outer.get(inner, []))
        raw[name] = (squares[name] / dfs[name] - raw["residual"] - inner_variance) / rows[name]
    variances = {name: max(0.0, float(raw[name])) for name in [*factors, "residual"]}
    return VarianceComponents(variances, tuple(name for name in factors if raw[name] < 0))


def _outer_factors(codes: Mapping[str, Codes]) -> dict[str, list[str]]:
    """Return the factors that each factor is nested in; refuse a table that is not balanced."""
    outer: dict[str, list[str]] = {name: [] for name in codes}
    for name, code in codes.items():
        counts = np.bincount(code)
        if np.ptp(counts) > 0:
            raise ValueError(
                f"Variance components need a balanced table, got {counts.min()} to {counts.max()} outcomes per {name}. "
                "Drop what some runs lack."
            )
    for name, inner in combinations(codes, 2):
        levels = [int(codes[factor].max()) + 1 for factor in (name, inner)]
        counts = np.bincount(codes[name] * levels[1] + codes[inner])
        counts = counts[counts > 0]
        is_nested, is_crossed = len(counts) == levels[1], len(counts) == levels[0] * levels[1]
        if np.ptp(counts) > 0 or not (is_nested or is_crossed):
            raise ValueError(
                f"Variance components need nested or evenly crossed factors, got {len(counts)} combinations of "
                f"{levels[0]} {name} and {levels[1]} {inner} with {counts.min()} to {counts.max()} outcomes each. "
                "Repeat what some runs lack."
            )
        if is_nested and levels[0] > 1:
            outer[inner].append(name)
    return outer


def _sums_of_squares(
    values: NDArray[np.float64], codes: Mapping[str, Codes], outer: Mapping[str, list[str]]
) -> tuple[dict[str, float], dict[str, int]]:
    """Return sums of squares and degrees of freedom by factor, and of the residual."""
    residual = values - values.mean()
    effects, dfs = {}, {"residual": len(values) - 1}
    for name, code in codes.items():
        means = np.bincount(code, residual) / np.bincount(code)
        effects[name] = means[code]
        residual = residual - means[code]
        dfs[name] = int(code.max()) - sum(dfs[factor] for factor in outer[name])
        dfs["residual"] -= dfs[name]
        if dfs[name] < 1:
            raise ValueError(f"{name} has no level of its own beside {outer[name] or 'the mean'}. Leave it out.")
    return {name: float((effect**2).sum()) for name, effect in (effects | {"residual": residual}).items()}, dfs
