"""A sum that is added up term by term."""

import random
import re
from itertools import accumulate
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


class RunningSum(Environment):
    """Add up terms of one digit, one a turn; a slip stays unless it is noticed.

    The first observation gives all terms, and behind a comma the first two, as in ``3 + 5 - 2, 3 + 5``. An action is a
    number: the sum so far. It is taken as it stands, right or wrong, and the next observation asks for the next term:
    ``8 - 2``. Anything else is answered by ``no number`` and the same question. There is a turn for every term but the
    first. The reward is one if the last action is the sum of all terms, so that a slip can be made good.

    Args:
        terms: Number of terms, 2 or more.

    """

    def __init__(self, terms: int = 8) -> None:
        if terms < 2:
            raise ValueError(f"RunningSum expects 2 terms or more, got {terms}. One term needs no addition.")
        self.terms = terms

    def reset(self, example: "Example") -> str:
        """Draw the terms."""
        rng = random.Random(example.metadata["seed"])
        values = [rng.randrange(10), *(rng.choice((-1, 1)) * rng.randrange(10) for _ in range(1, self.terms))]
        self.changes = [f"{'-' if value < 0 else '+'} {abs(value)}" for value in values[1:]]
        self.sums, self.sum, self.place, self.turns = list(accumulate(values)), values[0], 0, 0
        return f"{values[0]} {' '.join(self.changes)}, {values[0]} {self.changes[0]}"

    def step(self, action: str) -> Turn:
        """Take a sum as it stands."""
        self.turns += 1
        digits = action.strip()
        is_number = re.fullmatch(r"-?\d{1,4}", digits) is not None
        if self.turns == self.terms - 1:
            return Turn("", float(is_number and int(digits) == self.sums[-1]), done=True)
        if not is_number:
            return Turn(f"no number, {self.sum} {self.changes[self.place]}", 0.0)
        self.sum, self.place = int(digits), self.place + 1
        return Turn(f"{self.sum} {self.changes[self.place]}", 0.0)
