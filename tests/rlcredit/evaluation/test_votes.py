import pytest

from rlcredit.evaluation.votes import count_answer_votes
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
