"""A number that is guessed by halves."""

import random
import re
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


class Bisection(Environment):
    """Guess a number; every guess is answered by ``higher`` or ``lower``.

    An observation gives the numbers that are still possible and the turns that are left, as in ``higher, 32 to 62, 5
    left``; the first one begins with ``guess``. Anything but one of the ``numbers`` is answered by ``no number``. Every
    action costs a turn. The reward is one if the number is guessed in time.

    Args:
        numbers: Number of numbers, from 0 on.
        turns: Most guesses. Bisection always succeeds if ``numbers`` is below 2 to this power.

    """

    def __init__(self, numbers: int = 63, turns: int = 6) -> None:
        self.numbers, self.turns = numbers, turns

    def reset(self, example: "Example") -> str:
        """Draw the number."""
        self.number = random.Random(example.metadata["seed"]).randrange(self.numbers)
        self.low, self.high, self.left = 0, self.numbers - 1, self.turns
        return self.describe_range("guess")

    def step(self, action: str) -> Turn:
        """Answer a guess."""
        self.left -= 1
        digits = action.strip()
        guess = int(digits) if re.fullmatch(r"\d{1,9}", digits) else self.numbers
        is_guessed = guess == self.number
        if is_guessed or not self.left:
            return Turn("", float(is_guessed), done=True)
        if guess >= self.numbers:
            return Turn(self.describe_range("no number"), 0.0)
        if guess < self.number:
            self.low = max(self.low, guess + 1)
            return Turn(self.describe_range("higher"), 0.0)
        self.high = min(self.high, guess - 1)
        return Turn(self.describe_range("lower"), 0.0)

    def describe_range(self, answer: str) -> str:
        """Return an answer with the numbers that are possible and the turns that are left."""
        return f"{answer}, {self.low} to {self.high}, {self.left} left"
