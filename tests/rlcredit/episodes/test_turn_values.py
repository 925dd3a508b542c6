import math

import numpy as np
import pytest

from rlcredit.episodes.environment import Turn
from rlcredit.episodes.turn_values import TurnError, read_opening, read_turn


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"^Game\.step returned None\. Return Turn\(text, reward, done\)\.$"),
        ("higher", r"returned 'higher'\. Return Turn"),
        (("higher", 1.0, True), r"returned \('higher', 1\.0, True\)\. Return Turn"),
        (Turn(7), r"returned the text 7\. Return a str, empty where there is none\.$"),  # pyright: ignore[reportArgumentType]
        (Turn(None), r"returned the text None\."),  # pyright: ignore[reportArgumentType]
        (Turn("", math.nan), r"returned the reward nan\. Return a finite number, or None for none\.$"),
        (Turn("", math.inf), r"the reward inf\."),
        (Turn("", True), r"the reward True\."),
        (Turn("", "1"), r"the reward '1'\."),  # pyright: ignore[reportArgumentType]
        (Turn("", 1.0, "no"), r"returned done='no'\. Return True or False\.$"),  # pyright: ignore[reportArgumentType]
        (Turn("", 1.0, None), r"returned done=None\."),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_turn_is_named_with_its_repair(value, message):
    with pytest.raises(TurnError, match=message):
        read_turn(value, "Game")


def test_turns_have_numbers_of_python():
    turn = read_turn(Turn("up", np.float32(0.5), np.True_), "Game")  # pyright: ignore[reportArgumentType]
    assert turn == ("up", 0.5, True)
    assert [type(part) for part in turn] == [str, float, bool]
    assert read_turn(Turn("up", 1), "Game").reward == 1.0
    assert read_turn(Turn(), "Game") == ("", None, False)


def test_what_begins_an_episode_is_a_text_or_nothing():
    assert read_opening(None, "Game") is None
    assert read_opening("begin", "Game") == "begin"
    with pytest.raises(TurnError, match=r"^Game\.reset returned 7\. Return a text, or None for the question as it"):
        read_opening(7, "Game")
