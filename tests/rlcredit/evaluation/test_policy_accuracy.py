"""Accuracy by hand, for two questions and four completions each."""

import pytest

from rlcredit.evaluation.policy_accuracy import count_answer_votes, measure_policy_accuracy
from rlcredit.statistics.accuracy_at_k import pass_at_k
from rlcredit.statistics.intervals import share_interval
from tests.rlcredit.evaluation.answers import answer


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("right", "7"), ("right", "7.0"), ("right", r"\frac{14}{2}")], (3, ())),
        ([("wrong", "1/2"), ("wrong", "0.5"), ("wrong", r"\frac{1}{2}"), ("wrong", "0.51")], (0, (3, 1))),
        ([("wrong", "1,000"), ("wrong", "1000"), ("wrong", "$1000$")], (0, (3,))),
        ([("wrong", "x + 1"), ("wrong", "X+1"), ("wrong", "1+x")], (0, (2, 1))),
        ([("wrong", None), ("no_answer", None), ("unjudged", None)], (0, ())),
        ([("unjudged", "3"), ("wrong", "3")], (0, (2,))),
        ([("right", None), ("wrong", "3")], (1, (1,))),  # a verifier of one's own may find an answer that nobody sees
    ],
)
def test_what_says_the_same_is_one_vote(given, expected):
    assert count_answer_votes([answer(verdict, said) for verdict, said in given]) == expected


@pytest.fixture
def scored():
    first = [answer(), answer(), answer("wrong", "3"), answer("wrong", "4", truncated=True)]
    second = [answer("wrong", "5"), answer("wrong", "5.0"), answer("unjudged", None), answer(tokens=30, entropy=0.1)]
    return measure_policy_accuracy([*first, *second], 4, [1, 2, 4])


def test_accuracies_by_hand(scored):
    assert scored.accuracy["pass_at_1"].tolist() == [0.5, 0.25]
    assert scored.accuracy["pass_at_2"].tolist() == pytest.approx([1 - 1 / 6, 0.5])
    assert scored.accuracy["pass_at_4"].tolist() == [1, 1]
    assert scored.accuracy["maj_at_4"].tolist() == [1, 0]  # two against one and one; one against two
    assert "maj_at_2" not in scored.accuracy


def test_means_by_hand(scored):
    assert scored.means["tokens"] == pytest.approx((7 * 10 + 30) / 8)
    assert scored.means["entropy"] == pytest.approx((7 * 10 * 0.5 + 30 * 0.1) / 100)  # a token counts as a token
    assert scored.means["truncated"] == scored.means["unjudged"] == 1 / 8


def test_plain_numbers_are_means_with_their_intervals(scored):
    plain = scored.to_dict()
    assert plain["pass_at_1"]["mean"] == pytest.approx(0.375)
    assert (plain["pass_at_1"]["low"], plain["pass_at_1"]["high"]) == share_interval([0.5, 0.25])[:2]
    assert plain["tokens"] == scored.means["tokens"]
    assert plain["pass_at_k"] == pytest.approx([0.375, (1 - 1 / 6 + 0.5) / 2, (1 + 0.75) / 2, 1])


def test_pass_at_k_is_the_estimator_of_training():
    answers = [answer("right" if sample < 3 else "wrong", str(sample)) for sample in range(8)]
    assert measure_policy_accuracy(answers * 2, 8, [4]).accuracy["pass_at_4"] == pytest.approx(pass_at_k(8, [3, 3], 4))
