import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestIndPower, TTestPower

from rlcredit.statistics.power import detectable_effect, seeds_needed, t_test_power

THEIRS = {1: TTestPower(), 2: TTestIndPower()}
arms = st.sampled_from([1, 2])


@settings(deadline=None, max_examples=50)
@given(st.floats(0.1, 1.5), st.integers(2, 40), arms, st.sampled_from([0.01, 0.05, 0.1]))
def test_power_equals_statsmodels(effect, seeds, arms, alpha):
    theirs = THEIRS[arms].power(effect, seeds, alpha)
    assert np.isnan(theirs) or t_test_power(effect, seeds, arms, alpha) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(("effect", "arms"), [(0.3, 1), (0.3, 2), (1.0, 1), (1.0, 2), (2.5, 2)])
def test_seeds_needed_are_those_of_statsmodels_rounded_up(effect, arms):
    seeds = seeds_needed(effect, conditions=arms)
    assert seeds - 1 < THEIRS[arms].solve_power(effect, alpha=0.05, power=0.8) <= seeds


def test_an_effect_of_zero_is_found_with_chance_alpha():
    assert t_test_power(0.0, seeds=5, alpha=0.03) == pytest.approx(0.03)
    assert t_test_power(0.0, seeds=5, conditions=1, alpha=0.03) == pytest.approx(0.03)


@given(st.floats(0.05, 3), st.integers(2, 30), arms)
def test_the_sign_of_the_effect_does_not_matter(effect, seeds, arms):
    assert t_test_power(effect, seeds, arms) == pytest.approx(t_test_power(-effect, seeds, arms))


@settings(deadline=None)
@given(st.integers(2, 60), arms, st.floats(0.3, 0.95))
def test_detectable_effect_is_found_with_the_power_asked_for(seeds, arms, power):
    effect = detectable_effect(seeds, power, arms)
    assert t_test_power(effect, seeds, arms) == pytest.approx(power, abs=1e-6)
    assert abs(seeds_needed(1.001 * effect, power, arms)) <= seeds


def test_small_effects_need_the_normal_formula_many():
    needed = 2 * (1.959964 + 0.841621) ** 2 / 0.01**2
    assert seeds_needed(0.01) == pytest.approx(needed, rel=1e-4)


@pytest.mark.parametrize("effect", [2.0, 5.0, 100.0])
def test_effects_that_cannot_be_missed_have_power_one(effect):
    assert t_test_power(effect, seeds=60, conditions=1) == pytest.approx(1.0, abs=1e-12)


def test_a_zero_effect_is_never_found():
    with pytest.raises(ValueError, match="No number of seeds up to 10000000 finds an effect of 0"):
        seeds_needed(0.0)


def test_one_seed_has_no_power():
    with pytest.raises(ValueError, match="needs at least 2 seeds per condition, got 1"):
        t_test_power(1.0, seeds=1)


@pytest.mark.parametrize("power", [0.05, 1.0])
def test_a_power_that_says_nothing_is_refused(power):
    with pytest.raises(ValueError, match=r"between alpha = 0\.05 and 1, got"):
        detectable_effect(8, power)
