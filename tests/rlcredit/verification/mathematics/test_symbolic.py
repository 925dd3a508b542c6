import pytest

from rlcredit.verification.mathematics.symbolic import judge_symbolically


@pytest.mark.parametrize(
    ("product", "value", "sum_of_both"),
    [
        ("2(3)", "6", "5"),
        (r"\frac{6}{2}(3)", "9", "6"),
        (r"6\binom{4}{2}", "36", "12"),
        (r"(5)\frac{1}{2}", "2.5", "5.5"),
    ],
)
def test_factors_side_by_side_are_multiplied(product, value, sum_of_both):
    assert judge_symbolically(product, value) == 1.0
    assert judge_symbolically(product, sum_of_both) == 0.0


def test_a_whole_number_before_a_fraction_of_numbers_is_mixed():
    assert judge_symbolically(r"2\frac{1}{2}\pi", r"\frac{5\pi}{2}") == 1.0
