import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.formulas.contingency_tables import fisher_p_values, information_gain
from tests.contracts.references import fisher_two_sided

COUNT = st.integers(0, 28)


def table(*counts):
    return torch.tensor(counts, dtype=torch.float64)[:, None]


@given(COUNT, COUNT, COUNT, COUNT)
def test_fishers_p_is_the_sum_over_tables_that_are_no_likelier(a, b, c, d):
    assert fisher_p_values(table(a, b, c, d)).item() == pytest.approx(fisher_two_sided(a, b, c, d), rel=1e-6)


def test_fishers_tea():
    assert fisher_p_values(table(3, 1, 1, 3)).item() == pytest.approx(34 / 70)
    assert fisher_p_values(table(4, 0, 0, 4)).item() == pytest.approx(2 / 70)


def test_no_table_has_no_p():
    assert fisher_p_values(torch.zeros(4, 0).double()).shape == (0,)


@given(COUNT, COUNT, COUNT, COUNT)
def test_a_mark_tells_at_most_a_bit(a, b, c, d):
    if a + b + c + d:
        assert 0 <= information_gain(table(a, b, c, d)).item() <= 1 + 1e-9


def test_information_is_the_fall_of_entropy():
    entropy = -sum(p * math.log2(p) for p in (5 / 8, 3 / 8))
    left = -sum(p * math.log2(p) for p in (1 / 4, 3 / 4)) * 4 / 8
    assert information_gain(table(4, 0, 1, 3)).item() == pytest.approx(entropy - left)
