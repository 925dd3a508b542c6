import numpy as np
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from rlcredit.statistics.variance_components import variance_components

SHAPE = (3, 4, 6, 5)  # arms, runs of each, steps, prompts of each step
TRUE = {"arm": 0.5, "run": 0.25, "step": 2.0, "prompt": 1.0, "residual": 0.5}


def campaign():
    """Return labels of a campaign: runs nested in arms, prompts in steps, all runs seeing the same prompts."""
    arm, run, step, prompt = np.indices(SHAPE).reshape(4, -1)
    return {"arm": arm, "run": arm * SHAPE[1] + run, "step": step, "prompt": step * SHAPE[3] + prompt}


def outcomes(random, factors, true):
    """Return outcomes with normal effects of these variances."""
    noise = random.normal(0, np.sqrt(true["residual"]), len(factors["arm"]))
    return noise + sum(random.normal(0, np.sqrt(true[n]), 1 + max(code))[code] for n, code in factors.items())


def test_a_step_and_run_table_by_hand():
    # rows 0 1 / 2 5: MS_step = 9, MS_run = 4, residual = 1, and two rows to each level
    found = variance_components([0.0, 1.0, 2.0, 5.0], {"step": [0, 0, 1, 1], "run": [0, 1, 0, 1]})
    assert found.variances == pytest.approx({"step": 4.0, "run": 1.5, "residual": 1.0})
    assert found.shares == pytest.approx({"step": 4 / 6.5, "run": 1.5 / 6.5, "residual": 1 / 6.5})


def test_known_components_are_recovered_on_average():
    random, factors = np.random.default_rng(0), campaign()
    several = [variance_components(outcomes(random, factors, TRUE), factors).variances for _ in range(400)]
    for name, true in TRUE.items():
        values = np.array([found[name] for found in several])
        assert values.mean() == pytest.approx(true, abs=3 * values.std() / 20 + 0.05 * (name == "arm")), name


def test_a_shared_prompt_order_shows_as_steps_and_prompts():
    """Curves nearly alike in all arms while moving by tens of points are the order of the prompts."""
    random, factors = np.random.default_rng(0), campaign()
    true = {"arm": 0.0, "run": 0.0001, "step": 0.05, "prompt": 0.02, "residual": 0.005}
    shares = variance_components(outcomes(random, factors, true), factors).shares
    assert shares["step"] + shares["prompt"] > 0.85
    assert shares["arm"] + shares["run"] < 0.01


def test_a_negative_component_is_zero_and_told():
    found = variance_components([0.0, 1.0, 1.0, 0.0], {"step": [0, 0, 1, 1], "run": [0, 1, 0, 1]})
    assert found.variances == {"step": 0.0, "run": 0.0, "residual": 1.0}
    assert found.truncated == ("step", "run")


def test_one_factor_equals_restricted_maximum_likelihood():
    random = np.random.default_rng(0)
    runs = np.repeat(np.arange(12), 10)
    values = random.normal(0, 1, 12)[runs] + random.normal(0, 0.7, 120)
    theirs = MixedLM(values, np.ones(120), groups=runs).fit()
    found = variance_components(values, {"run": runs}).variances
    assert found["run"] == pytest.approx(float(theirs.cov_re.squeeze()), rel=1e-4)
    assert found["residual"] == pytest.approx(float(theirs.scale), rel=1e-4)


def test_names_of_labels_and_order_of_rows_do_not_matter():
    random, factors = np.random.default_rng(0), campaign()
    values, order = outcomes(random, factors, TRUE), np.random.default_rng(1).permutation(360)
    named = {name: np.array([f"{name} {code}" for code in codes])[order] for name, codes in factors.items()}
    found, expected = variance_components(values[order], named), variance_components(values, factors)
    assert found.variances == pytest.approx(expected.variances)


def test_seeds_named_alike_are_crossed_with_arms():
    arm, seed, _ = np.indices((2, 3, 4)).reshape(3, -1)
    values = np.array([0.0, 1.0, 5.0])[seed] + 10 * arm + np.tile([-1.0, 1.0], 12)
    crossed = variance_components(values, {"arm": arm, "seed": seed}).variances
    nested = variance_components(values, {"arm": arm, "run": 3 * arm + seed}).variances
    assert crossed["seed"] == pytest.approx(7.0 - 24 / 20 / 8)  # variance of 0, 1, 5 less the residual's share
    assert nested["run"] == pytest.approx(7.0 - 24 / 18 / 4)  # two degrees of freedom more go to runs


def test_a_crashed_run_is_refused():
    with pytest.raises(ValueError, match="need a balanced table, got 2 to 3 outcomes per step"):
        variance_components([1, 2, 3, 4, 5], {"step": [0, 0, 0, 1, 1], "run": [0, 1, 2, 0, 1]})


def test_arms_of_unequal_numbers_of_runs_are_refused():
    with pytest.raises(ValueError, match="got 2 to 4 outcomes per arm"):
        variance_components(np.arange(6), {"arm": [0, 0, 1, 1, 1, 1], "run": [0, 0, 1, 1, 2, 2]})


def test_factors_neither_nested_nor_crossed_evenly_are_refused():
    with pytest.raises(ValueError, match="got 4 combinations of 2 step and 3 run with 1 to 2 outcomes each"):
        variance_components(np.arange(6), {"step": [0, 0, 0, 1, 1, 1], "run": [0, 0, 1, 1, 2, 2]})


def test_outcomes_that_never_vary_have_no_shares():
    found = variance_components(np.ones(4), {"step": [0, 0, 1, 1], "run": [0, 1, 0, 1]})
    assert found.shares == {"step": 0.0, "run": 0.0, "residual": 0.0}


def test_a_missing_outcome_is_refused():
    with pytest.raises(ValueError, match="A variance decomposition needs finite values, got nan at 1"):
        variance_components([1.0, float("nan")], {"run": [0, 1]})


def test_one_run_per_arm_cannot_be_told_from_the_arm():
    with pytest.raises(ValueError, match="run has no level of its own beside"):
        variance_components([1, 2, 3, 4], {"arm": [0, 0, 1, 1], "run": [5, 5, 7, 7]})


def test_one_arm_has_no_variance():
    with pytest.raises(ValueError, match="arm has no level of its own beside the mean"):
        variance_components([1, 2, 3, 4], {"arm": [0, 0, 0, 0], "run": [0, 0, 1, 1]})


def test_a_factor_per_row_leaves_no_residual():
    with pytest.raises(ValueError, match="4 outcomes leave nothing for the residual"):
        variance_components([1, 2, 3, 4], {"run": [0, 1, 2, 3]})
