import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import power_proportions_2indep, samplesize_proportions_2indep_onetail

from rlcredit.statistics.proportion_power import detectable_difference, generations_needed


def test_half_against_six_tenths_by_hand():
    # (1.959964 * sqrt(2 * 0.55 * 0.45) + 0.841621 * sqrt(0.25 + 0.24))^2 / 0.01 = (1.37897 + 0.58913)^2 / 0.01
    assert generations_needed(0.5, 0.6) == math.ceil(1.96810**2 / 0.01) == 388


@settings(deadline=None, max_examples=50)
@given(st.floats(0.05, 0.9), st.floats(0.002, 0.08), st.sampled_from([0.7, 0.8, 0.95]))
def test_equals_statsmodels(base, rise, power):
    theirs = samplesize_proportions_2indep_onetail(rise, base, power)
    assert generations_needed(base + rise, base, power) == pytest.approx(theirs, abs=1.0001, rel=1e-9)


def test_so_many_generations_have_the_power_by_statsmodels():
    generations = generations_needed(0.50, 0.45)
    assert power_proportions_2indep(0.05, 0.45, generations).power == pytest.approx(0.8, abs=1e-3)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.05, 0.9), st.integers(200, 1_000_000))
def test_detectable_difference_needs_just_so_many_generations(base, generations):
    rise = detectable_difference(base, generations)
    assert generations_needed(base, base + rise) == pytest.approx(generations, abs=1, rel=1e-6)


@given(st.floats(0.1, 0.45), st.floats(0.01, 0.05))
def test_right_and_wrong_may_be_exchanged(base, rise):
    assert generations_needed(base, base + rise) == pytest.approx(generations_needed(1 - base, 1 - base - rise), abs=1)


def test_equal_rates_are_refused():
    with pytest.raises(ValueError, match=r"tells two rates of 0\.5 apart"):
        generations_needed(0.5, 0.5)


def test_two_generations_show_nothing():
    with pytest.raises(ValueError, match=r"2 generations cannot tell a rate of 0\.5 from 1"):
        detectable_difference(0.5, generations=2)
