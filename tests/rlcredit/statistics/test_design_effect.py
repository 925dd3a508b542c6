import numpy as np
import pytest

from rlcredit.statistics.design_effect import design_effect


def test_alike_outcomes_count_once_and_independent_ones_fully():
    assert (design_effect(16, 0.0), design_effect(16, 1.0), design_effect(1, 0.5)) == (1, 16, 1)


def test_it_is_the_variance_of_a_mean_over_that_of_independent_outcomes():
    random = np.random.default_rng(0)
    rates = random.beta(1, 1, (20_000, 30))  # correlation 1 / (1 + 1 + 1)
    means = random.binomial(8, rates).mean(1) / 8
    assert means.var() / (0.25 / 240) == pytest.approx(design_effect(8, 1 / 3), rel=0.04)
