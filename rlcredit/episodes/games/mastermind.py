"""A code that is guessed from what is right about guesses."""

import random
from collections import Counter
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


class Mastermind(Environment):
    """Guess a code of letters; every guess is answered by how much of it is right.

    The first observation gives letters, places and turns, as in ``abc 3 places, 4 left``. A guess has a letter for each
    place. It is answered by its letters at their place, its further letters at another one, and the turns that are
    left: ``1 right 1 near, 3 left``. Anything else is answered by ``no code``. Every action costs a turn. The reward is
    one if the code is guessed in time.

    Args:
        places: Number of letters of the code.
        colors: Number of letters to choose from.
        turns: Most guesses.

    """

    def __init__(self, places: int = 3, colors: int = 3, turns: int = 4) -> None:
        self.places, self.letters, self.turns = places, "abcdefghijklmnopqrstuvwxyz"[:colors], turns

    def reset(self, example: "Example") -> str:
        """Draw the code."""
        rng = random.Random(example.metadata["seed"])
        self.code = "".join(rng.choice(self.letters) for _ in range(self.places))
        self.left = self.turns
        return f"{self.letters} {self.places} places, {self.left} left"

    def step(self, action: str) -> Turn:
        """Answer a guess."""
        self.left -= 1
        guess = action.strip()
        is_guessed = guess == self.code
        if is_guessed or not self.left:
            return Turn("", float(is_guessed), done=True)
        if len(guess) != self.places or not set(guess) <= set(self.letters):
            return Turn(f"no code, {self.left} left", 0.0)
        right = sum(letter == other_letter for letter, other_letter in zip(guess, self.code, strict=True))
        near = (Counter(guess) & Counter(self.code)).total() - right
        return Turn(f"{right} right {near} near, {self.left} left", 0.0)
