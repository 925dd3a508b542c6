import pytest
import sympy
from sympy import Max, Rational, cos, exp, floor, pi, sqrt
from sympy.abc import n, x, y

from rlcredit.verification.mathematics.agreement import has_constant_ratio, is_same_function, is_zero


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (5 - x, abs(x - 5), False),
        (sqrt((x - 9) ** 2), abs(9 - x), True),
        (abs(2 * x - 9) + abs(2 * x - 11), 2 * abs(2 * x - 10), False),
        (abs(x - y - 100), 100 + y - x, False),
        (Max(x, 100), (x + 100 + abs(x - 100)) / 2, True),
        (floor(x) + 1, sympy.ceiling(x), False),
        (x + Rational(1, 10**60), x, False),
        (sqrt(1 / n), 1 / sqrt(n), True),
        (exp(sympy.I * x), exp(-sympy.I * x), False),
        (sqrt(-((x - 5) ** 2)), sympy.Integer(0), None),
    ],
)
def test_functions_agree_on_both_sides_of_every_seam(ours, theirs, same):
    assert is_same_function(ours, theirs) is same


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (sqrt(10**120 + 1) - 10**60, False),
        ((2 + sqrt(3)) ** 100 + (2 - sqrt(3)) ** 100 - (2 + sqrt(3)) ** 100, False),
        (sqrt(5 + 2 * sqrt(6)) - sqrt(2) - sqrt(3), True),
        (cos(pi / 7) * cos(2 * pi / 7) * cos(3 * pi / 7) - Rational(1, 8), True),
        (exp(200) + exp(-200) - 2 * sympy.cosh(200), True),
        (1 - sympy.tanh(200), False),
        ((1 + sqrt(2)) ** 999999 - (1 - sqrt(2)) ** 999999 - (1 + sqrt(2)) ** 999999, None),
    ],
)
def test_a_number_is_zero_only_where_its_size_allows_no_other(number, expected):
    assert is_zero(number) is expected


def test_a_ratio_is_constant_on_both_sides_of_a_seam():
    assert has_constant_ratio(2 * abs(x - 5), abs(5 - x), positive=True)
    assert not has_constant_ratio(5 - x, abs(x - 5), positive=True)
    assert not has_constant_ratio(x - 1, 1 - x, positive=True)
    assert has_constant_ratio(x - 1, 1 - x, positive=False)
