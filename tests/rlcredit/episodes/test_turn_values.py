import math
import re
import sys

import numpy as np
import pytest

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.episode_table import open_episode, step_environments
from rlcredit.episodes.replay import refuse_changing_environment
from rlcredit.episodes.turn_values import TurnError, read_opening, read_turn
from rlcredit.tasks.example import Example


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


class Faulty(Environment):
    """Does what its one word says, in ``reset`` or in ``step``."""

    def __init__(self, beginning=None):
        self.beginning = beginning

    def reset(self, example):
        return {"raise": lambda: 1 / 0, "exit": lambda: sys.exit(3), "number": lambda: 7}.get(self.beginning, str)()

    def step(self, action):
        return {"raise": lambda: 1 / 0, "exit": lambda: sys.exit(3), "number": lambda: 7}.get(action, Turn)()


class AwaitedFaulty(Faulty):
    async def step(self, action):
        return super().step(action)


@pytest.mark.parametrize("cls", [Faulty, AwaitedFaulty])
def test_what_an_environment_does_is_the_fault_of_one_row(cls):
    episodes = [open_episode(cls(), Example("", "", {})) for _ in range(4)]
    for episode, action in zip(episodes, ("raise", "exit", "number", "well"), strict=True):
        episode.actions.append(action)
    *faults, good = step_environments(episodes, cls.__name__)
    for fault, message in zip(faults, ("raised ZeroDivisionError", "raised SystemExit: 3", "returned 7."), strict=True):
        assert str(fault).startswith(f"{cls.__name__}.step {message}")
    assert good == Turn()


@pytest.mark.parametrize(
    ("beginning", "message"),
    [
        ("raise", "Faulty.reset raised ZeroDivisionError: division by zero"),
        ("exit", "Faulty.reset raised SystemExit: 3"),
        ("number", "Faulty.reset returned 7. Return a text, or None for the question as it stands."),
    ],
)
def test_an_environment_that_does_not_begin_is_refused_before_the_run(beginning, message):
    with pytest.raises(ValueError, match=f"^data.init_args.environment: {re.escape(message)}"):
        refuse_changing_environment(Faulty(beginning), Example("", "", {}))
