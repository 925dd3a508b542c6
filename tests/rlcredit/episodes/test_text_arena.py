import random
import sys

import pytest

from rlcredit.episodes.episode_table import open_episode, step_environments
from rlcredit.episodes.replay import refuse_changing_environment
from rlcredit.episodes.text_arena import TextArena
from rlcredit.tasks.example import Example


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "textarena", None)
    with pytest.raises(ValueError, match=r"TextArena cannot be imported: .* Install it: pip install 'rlcredit\[text"):
        TextArena()


def play(name, seed, actions):
    episode = open_episode(TextArena(name), Example("", "", {"seed": seed}))
    assert episode.fault is None
    answers = []
    for action in actions:
        episode.actions.append(action)
        answers += step_environments([episode], name)
    return episode.opening, answers


def test_numbers_are_guessed():
    pytest.importorskip("textarena")
    opening, answers = play("GuessTheNumber-v0", 3, [f"[{number}]" for number in range(1, 9)])
    assert opening.startswith("You are Player 0. You are playing Guess The Number.")
    assert answers[0] == ("The target number is higher.", 0.0, False)
    assert [answer.done for answer in answers] == [False] * 7 + [True]
    assert answers[-1].reward == 1.0
    _, answers = play("GuessTheNumber-v0", 3, ["eight", "[8]"])
    assert answers[0].text.startswith("You attempted an invalid move. Reason: Invalid move format.")
    assert answers[1].done


@pytest.mark.parametrize(
    ("name", "action", "said"),
    [
        ("GuessTheNumber-v0", "[1]", "The target number is higher."),
        ("GuessTheNumber-v0-train", "1", "The target number is higher."),
        ("Mastermind-v0", "[1 2 3 4]", "Submitted [1 2 3 4]. Feedback:"),
        ("FrozenLake-v0", "[right]", "You moved right to position (0, 1)."),
    ],
)
def test_games_are_the_same_for_the_same_seed_and_leave_the_generator_alone(name, action, said):
    pytest.importorskip("textarena")
    random.seed(0)
    plays = [play(name, 5, [action, action]) for _ in range(2)]
    other = play(name, 6, [action, action])
    assert random.random() == pytest.approx(0.8444218515250481)
    assert plays[0] == plays[1]
    assert plays[0][1][0].text.startswith(said)
    if name == "FrozenLake-v0":
        assert plays[0] != other
    refuse_changing_environment(TextArena(name), Example("", "", {"seed": 5}))


def test_games_go_on_from_a_copy():
    pytest.importorskip("textarena")
    environment = TextArena("2048-v0")
    environment.reset(Example("", "", {"seed": 1}))
    environment.step("[up]")
    branch = environment.copy()
    actions = ["[left]", "[up]"]
    assert list(map(branch.step, actions)) == list(map(environment.step, actions))


def test_games_that_there_are_not_are_refused():
    pytest.importorskip("textarena")
    with pytest.raises(ValueError, match=r"TextArena has no game 'Chess'\. Name one that it has"):
        TextArena("Chess")
    fault = open_episode(TextArena("TicTacToe-v0"), Example("", "", {"seed": 5})).fault
    assert fault.startswith("TextArena.reset raised AssertionError")
