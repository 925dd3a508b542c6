import pytest

from rlcredit.statistics.finite_sample import finite_sample


def test_a_crashed_run_is_named_by_its_place():
    with pytest.raises(ValueError, match=r"Welch's t needs finite values, got nan at 1\. Repeat that run"):
        finite_sample([0.5, float("nan"), 0.7], fewest=2, purpose="Welch's t")


@pytest.mark.parametrize("values", [[0.5], 0.5, [[0.5, 0.6]]])
def test_one_run_or_a_table_is_no_sample(values):
    with pytest.raises(ValueError, match=r"A paired t needs a row of at least 2 values, got shape .* Run more seeds"):
        finite_sample(values, fewest=2, purpose="A paired t")
