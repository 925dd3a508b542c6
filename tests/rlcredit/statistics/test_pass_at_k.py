from itertools import combinations

import pytest

from rlcredit.statistics.pass_at_k import pass_at_k


@pytest.mark.parametrize(("k", "expected"), [(1, 0.25), (2, 0.464286), (4, 0.785714), (8, 1.0)])
def test_published_values_for_two_right_of_eight(k, expected):
    assert pass_at_k(8, 2, k) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("correct", range(6))
def test_equals_the_share_of_all_subsets_with_a_right_one(correct):
    outcomes = [True] * correct + [False] * (5 - correct)
    subsets = list(combinations(outcomes, 3))
    assert pass_at_k(5, correct, 3) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_more_tries_than_completions_are_refused():
    with pytest.raises(ValueError, match="pass@5 needs at least 5 completions"):
        pass_at_k(4, 1, 5)
