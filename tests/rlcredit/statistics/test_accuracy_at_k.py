"""maj@k: by hand, and against every subset there is."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from rlcredit.statistics.accuracy_at_k import majority_at_k, pass_at_k


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


def counted(answers, k):
    """Return the mean over all subsets; answers are names, `r` is right and None no answer."""
    won = []
    for subset in combinations(answers, k):
        votes = Counter(answer for answer in subset if answer)
        leaders = [answer for answer, number in votes.items() if number == max(votes.values())]
        won.append(leaders.count("r") / len(leaders) if leaders else 0.0)
    return np.mean(won)


@pytest.mark.parametrize(
    "answers",
    ["rrabc", "rraabb", "rabcdefg", "rrraaaN", "NNNr", "NNN", "aab", "rrrr", "rraaabbN", "rrraaabbccN"],
)
def test_it_is_the_mean_over_every_subset(answers):
    names = [None if name == "N" else name for name in answers]
    wrong = tuple(number for name, number in Counter(names).items() if name not in ("r", None))
    for k in range(1, len(names) + 1):
        assert majority_at_k(names.count("r"), wrong, len(names), k) == pytest.approx(counted(names, k)), k


def test_by_hand():
    assert majority_at_k(3, (2, 1), 6, 6) == 1.0
    assert majority_at_k(2, (3, 1), 6, 6) == 0.0
    assert majority_at_k(2, (2, 2), 6, 6) == pytest.approx(1 / 3)  # three are level
    assert majority_at_k(8, (24,), 32, 1) == 0.25  # one completion alone
    # Of three completions, one right and two wrong in different ways: with two votes, right is in two of three pairs
    # and level in both.
    assert majority_at_k(1, (1, 1), 3, 2) == pytest.approx(2 / 3 / 2)


def test_many_completions_are_counted_exactly(monkeypatch):
    cases = [(12, (9, 9, 9, 1, 1), 48, 24), (16, (12, 4), 32, 16), (1, (1,) * 31, 32, 32)]
    floats = [majority_at_k.__wrapped__(*case) for case in cases]
    monkeypatch.setattr("rlcredit.statistics.accuracy_at_k._MAX_EXACT_COMPLETIONS", 0)
    assert [majority_at_k.__wrapped__(*case) for case in cases] == floats
    assert majority_at_k(150, (106,), 256, 256) == 1.0


def test_a_vote_sharpens_what_is_right_more_often_than_any_other_answer():
    values = [majority_at_k(12, (8, 6, 6), 32, k) for k in (1, 2, 4, 8, 16, 32)]
    assert values[0] == pytest.approx(values[1])  # with two votes a tie is all there can be
    assert values == sorted(values)
    assert values[-1] == 1.0


def test_it_is_unbiased_where_pass_at_k_of_drawn_answers_is_known():
    random, chances = np.random.default_rng(0), [0.4, 0.3, 0.3]
    votes = random.multinomial(8, chances, 20_000)
    truth = np.mean([counted(["rab"[x] for x in random.choice(3, 4, p=chances)], 4) for _ in range(20_000)])
    estimate = np.mean([majority_at_k(int(r), tuple(int(x) for x in w if x), 8, 4) for r, *w in votes])
    assert estimate == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(("arguments", "message"), [((1, (1,), 4, 5), "at least 5"), ((3, (3,), 4, 2), "6 votes")])
def test_impossible_votes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        majority_at_k(*arguments)
