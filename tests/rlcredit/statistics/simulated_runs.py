"""Simulated runs: normal ones, and pass@1 near 0.95 over 512 questions, which is bounded, discrete and skewed."""

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from rlcredit.statistics.paired_comparison import conclude_paired_family, student_paired_test

QUESTIONS = 512
DEVIATION = 0.3
"""Of a run's log-odds from its arm's: 1.4 points of pass@1, 1.8 with the binomial noise of 512 questions."""


def pass_at_1(random: np.random.Generator, log_odds) -> np.ndarray:
    """Return pass@1 of runs with these log-odds, the arm's mean being 0.95 at the median."""
    return random.binomial(QUESTIONS, expit(logit(0.95) + log_odds)) / QUESTIONS


def arm(random: np.random.Generator, shape: tuple[int, ...], shift: float = 0.0) -> np.ndarray:
    """Return pass@1 of independent runs of one arm."""
    return pass_at_1(random, shift + DEVIATION * random.normal(size=shape))


def pairs(random: np.random.Generator, shape: tuple[int, ...], shift: float = 0.0) -> np.ndarray:
    """Return differences of two arms whose seeds move both: 0.2 in common, and each arm's own deviation."""
    seeds = 0.2 * random.normal(size=shape)
    arms = [pass_at_1(random, by + seeds + DEVIATION * random.normal(size=shape)) for by in (shift, 0.0)]
    return arms[0] - arms[1]


def expected(shift: float = 0.0, deviation: float = DEVIATION) -> float:
    """Return the mean of pass@1 over runs, by quadrature over a hundred thousand quantiles."""
    quantiles = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    return float(expit(logit(0.95) + shift + deviation * quantiles).mean())


def conclude_one(differences, margin, alpha=0.05):
    """Return in words what differences show that are a family of their own."""
    (conclusion,) = conclude_paired_family([student_paired_test(differences, margin)], margin, alpha)
    return conclusion.words
