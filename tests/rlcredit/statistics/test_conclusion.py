import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.conclusion import seeds_to_decide, state_conclusion
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.power import t_test_power
from rlcredit.statistics.t_test import paired_t_test

differences = st.lists(st.integers(-40, 40), min_size=2, max_size=12).map(lambda points: np.array(points) / 512)


def around(mean, deviation, seeds):
    """Return differences with exactly this mean and standard deviation."""
    row = np.arange(seeds) - (seeds - 1) / 2
    return mean + deviation * row / row.std(ddof=1)


@pytest.mark.parametrize(
    ("mean", "deviation", "said"),
    [
        (0.03, 0.01, "better"),
        (-0.03, 0.01, "worse"),
        (0.0, 0.005, "equivalent within 1 pp"),
        (0.0, 0.03, "undecided: a new campaign needs 120 seeds"),
        (0.015, 0.02, "undecided: a new campaign needs 55 seeds"),
    ],
)
def test_eight_seeds_and_a_margin_of_one_point(mean, deviation, said):
    assert state_conclusion(around(mean, deviation, 8), margin=0.01) == said


def test_a_real_difference_within_the_margin_is_equivalent():
    row = around(0.004, 0.003, 8)
    assert paired_t_test(row).p < 0.01
    assert state_conclusion(row, margin=0.01) == "equivalent within 1 pp"
    assert state_conclusion(row, margin=0.003) == "better"


def test_margins_are_printed_in_points():
    assert state_conclusion([0.0, 0.0], margin=0.005) == "equivalent within 0.5 pp"


def test_a_family_is_corrected_before_it_is_judged():
    family = [around(mean, 0.01, 8) for mean in (0.009, 0.012, 0.0, 0.03)]
    tests = [paired_t_test(row) for row in family]
    ps = holm_adjusted_p([test.p for test in tests])
    same = holm_adjusted_p([equivalence_test(test, margin=0.01).p for test in tests])
    alone = [state_conclusion(row, margin=0.01) for row in family]
    judged = [
        state_conclusion(row, margin=0.01, p=p, p_equivalence=q, family=4)
        for row, p, q in zip(family, ps, same, strict=True)
    ]
    assert alone == ["better", "better", "equivalent within 1 pp", "better"]
    assert judged == [
        "undecided: a new campaign needs 26 seeds",
        "better",
        "undecided: a new campaign needs 26 seeds",
        "better",
    ]


@settings(deadline=None, max_examples=50)
@given(differences, st.floats(0.001, 0.2), st.sampled_from([0.01, 0.05, 0.1]))
def test_more_seeds_are_asked_for_than_there_are(row, margin, alpha):
    said = state_conclusion(row, margin, alpha=alpha)
    if said.startswith("undecided"):
        needed = int(said.split()[-2])
        assert needed == max(len(row) + 1, seeds_to_decide(row.std(ddof=1), margin, alpha))
        assert seeds_to_decide(row.std(ddof=1), margin, alpha) > len(row)


@settings(deadline=None, max_examples=50)
@given(differences, st.floats(0.001, 0.2))
def test_exchanging_the_arms_exchanges_better_and_worse(row, margin):
    exchanged = {"better": "worse", "worse": "better"}
    said = state_conclusion(row, margin)
    assert state_conclusion(-row, margin) == exchanged.get(said, said)


@settings(deadline=None, max_examples=50)
@given(st.floats(-0.1, 0.1), st.floats(0.001, 0.05))
def test_with_so_many_seeds_no_difference_is_undecided(mean, deviation):
    seeds = seeds_to_decide(deviation, margin=0.02)
    if seeds < 3000:
        assert not state_conclusion(around(mean, deviation, seeds), margin=0.02).startswith("undecided")


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_so_many_seeds_have_a_power_of_about_ninety_five_percent_either_way(ratio):
    seeds = seeds_to_decide(ratio, margin=1.0)
    assert t_test_power(1 / ratio, seeds, arms=1) == pytest.approx(0.95, abs=0.035)
    rows = np.random.default_rng(0).normal(0, ratio, (2000, seeds))
    shown = [equivalence_test(paired_t_test(row), margin=1.0).p <= 0.05 for row in rows]
    assert np.mean(shown) == pytest.approx(0.95, abs=0.035)


def test_many_seeds_need_thirteen_squared_ratios():
    assert seeds_to_decide(1.0, margin=0.01) == pytest.approx((1.959964 + 1.644854) ** 2 * 1e4, rel=1e-4)
    assert math.isclose((1.959964 + 1.644854) ** 2, 12.99, abs_tol=0.01)
