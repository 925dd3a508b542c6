"""Players of the games of :mod:`rlcredit.episodes.games`, who know the right action and often take another.

Each sees what the environment hides, and slips so often that 3 to 10 % of its episodes succeed. What it knows is in the
observations too, so that a policy which learns from it can play without a slip.

"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.games import Bisection, Corridor, RunningSum
from rlcredit.episodes.games.corridor import KEY_COLORS
from rlcredit.tasks.example import Example


class ColorEcho(Environment):
    """Name a colour that is to be said again, a few times; a policy that always can is able to be sure of a key."""

    def reset(self, example: Example) -> str:
        """Name the first colour."""
        self.rng, self.turns = random.Random(example.metadata["seed"]), 0
        return self.name_color()

    def step(self, action: str) -> Turn:
        """Name the next colour."""
        self.turns += 1
        return Turn(self.name_color(), 0.0, done=self.turns == 12)

    def name_color(self) -> str:
        """Return a colour and remember it."""
        self.color = self.rng.choice(KEY_COLORS)
        return self.color


def choose_key(corridor: Corridor | ColorEcho, rng: random.Random) -> str:
    """Return any key in a hall; at a door a wrong one so often that the episode succeeds as often with few doors."""
    if isinstance(corridor, ColorEcho):
        return corridor.color
    color = corridor.colors.get(corridor.place)
    if color and rng.random() < CORRIDOR_SUCCESS ** (1 / corridor.doors):
        return color
    return rng.choice([key for key in KEY_COLORS if key != color])


CORRIDOR_SUCCESS = 0.06
"""Share of episodes in which every door is opened by its key."""


def draw_corridor(rng: random.Random, shares: Sequence[int], lengths: Sequence[int]) -> Corridor | ColorEcho:
    """Return a corridor of so many halvings of the share of doors, marked or not; now and then colours to echo."""
    if rng.random() < ECHO_SHARE:
        return ColorEcho()
    return Corridor(2.0 ** -rng.choice(shares), rng.choice(lengths), rng.random() < 0.5)


ECHO_SHARE = 0.15
"""Share of episodes in which colours are said again."""


def choose_guess(game: Bisection, rng: random.Random) -> str:
    """Return the middle of what is possible, or its first number, or, for nothing, one that is not possible."""
    if rng.random() < BISECTION_HABITS["halve"]:
        return str((game.low + game.high) // 2)
    if rng.random() < BISECTION_HABITS["waste"]:
        return str(rng.choice((max(game.low - 1, 0), min(game.high + 1, game.numbers - 1))))
    return str(game.low)


BISECTION_HABITS = {"halve": 0.25, "waste": 0.9}
"""Probabilities of halving what is possible, and otherwise of a guess beside it."""


def choose_sum(game: RunningSum, rng: random.Random) -> str:
    """Return the next sum, often a little too much; seldom what it would be without the slips before."""
    if rng.random() < SUM_HABITS["notice"]:
        return str(game.sums[game.place + 1])
    result = game.sum + int(game.changes[game.place].replace(" ", ""))
    slip = rng.choice((1, 2)) if rng.random() < SUM_HABITS["slip"] else 0
    return str(result + slip)


SUM_HABITS = {"notice": 0.02, "slip": 0.38}
"""Probabilities in each turn of making earlier slips good, and of a new one."""

GAME_PIECES = r"\d| ?\p{L}+ ?|[^\p{L}\d]+"
"""Pieces of observations and actions; a number is its digits."""


@dataclass(frozen=True)
class GameRecipe:
    """What a policy for a game is made of.

    Args:
        draw: Function that makes the environment of an episode.
        choose: Player, a function of an environment that has begun.
        tokens: Approximate tokens of all actions; a constant factor of the loss.

    """

    draw: Callable[[random.Random], Any]
    choose: Callable[[Any, random.Random], str]
    tokens: int
    pieces: str = GAME_PIECES
    formats: ClassVar[tuple[str, str]] = ("{}\n", "{}\n")
    """How observations and actions are written."""

    def write_episodes(self, seed: int) -> Iterator[list[str]]:
        """Yield episodes without end, each an observation, the action, the next observation and so on."""
        rng = random.Random(seed)
        for number in count():
            environment, is_over = self.draw(rng), False
            texts = [environment.reset(Example("", "", {"seed": f"{seed} {number}"}))]
            while not is_over:
                texts.append(self.choose(environment, rng))
                text, _, is_over = environment.step(texts[-1])
                texts += [] if is_over else [text]
            yield texts


GAME_RECIPES = {
    "corridor": GameRecipe(
        partial(draw_corridor, shares=range(5), lengths=(4, 8, 12, 16, 16, 16)), choose_key, tokens=26
    ),
    "corridor_of_one_door": GameRecipe(
        partial(draw_corridor, shares=(0, 1, 2, 3, 4, 4, 4, 4), lengths=(4, 4, 4, 8, 12, 16)), choose_key, tokens=26
    ),
    "bisection": GameRecipe(
        lambda rng: Bisection(*rng.choice(((15, 4), (31, 5), *((63, 6),) * 3))), choose_guess, tokens=15
    ),
    "running_sum": GameRecipe(lambda rng: RunningSum(rng.choice((3, 4, 5, 6, 7, *5 * (8,)))), choose_sum, tokens=17),
}
"""By the name of the policy, mostly of the usual length; a corridor of one door, for a policy that knows corridors."""
