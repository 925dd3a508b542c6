import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.statistics.learning_curve_area import learning_curve_area


def test_unequal_steps_weigh_by_their_width():
    # (10 * (0 + 0.4) / 2 + 30 * (0.4 + 0.8) / 2) / 40 = (2 + 18) / 40
    assert learning_curve_area([0, 10, 40], [0.0, 0.4, 0.8]) == pytest.approx(0.5)


def test_each_curve_has_its_area():
    areas = learning_curve_area([5, 6, 7], [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
    assert areas == pytest.approx([1.0, 0.5])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(-5, 5), st.floats(0.1, 10))
def test_neither_the_first_step_nor_the_unit_of_steps_matters(values, first, unit):
    steps = np.arange(len(values)) ** 2.0
    assert learning_curve_area(first + unit * steps, values) == pytest.approx(learning_curve_area(steps, values))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_the_area_lies_between_the_lowest_and_the_highest_point(values):
    assert min(values) - 1e-12 <= learning_curve_area(np.arange(len(values)), values) <= max(values) + 1e-12


@pytest.mark.parametrize("steps", [[3], [0, 10, 10], [10, 0, 20]])
def test_steps_that_do_not_increase_are_refused(steps):
    with pytest.raises(ValueError, match="at least two increasing steps"):
        learning_curve_area(steps, np.ones(len(steps)))
