"""A corridor of halls and locked doors, whose dial is the share of turns that matter."""

import random
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

KEY_COLORS = ("red", "blue", "gold", "green")


class Corridor(Environment):
    """Walk through a corridor of halls and locked doors; a wrong key goes unnoticed until the end, unless it is marked.

    An observation is a place: its number and ``hall``, as in ``6 hall``, or the colour and number of a door and the
    number of doors: ``7 red 2 of 4``. The first one begins with the number of places: ``16 places, 1 hall``. In a hall
    any action leads on. At a door a key is turned, ``red``, ``blue``, ``gold`` or ``green``, and leads on, be it the
    right one or not; anything else is answered by ``no key`` and leads nowhere. The episode ends after as many turns as
    there are places. The reward is one if all places lie behind and every door was opened by the key of its colour.

    Args:
        rho: Share of places that are doors, at least one: of turns that matter.
        length: Number of places, and of turns.
        marks_mistakes: Whether all places after a wrong key end in ``lost``, as in ``8 hall lost``.

    """

    def __init__(self, rho: float = 0.25, length: int = 16, marks_mistakes: bool = False) -> None:
        if not 0 < rho <= 1:
            raise ValueError(f"Corridor expects rho above 0 and up to 1, got {rho}. It is the share of doors.")
        self.rho, self.length, self.doors = rho, length, max(1, round(rho * length))
        self.marks_mistakes = marks_mistakes

    def reset(self, example: "Example") -> str:
        """Begin at the first place."""
        rng = random.Random(example.metadata["seed"])
        doors = sorted(rng.sample(range(self.length), self.doors))
        self.colors = {place: rng.choice(KEY_COLORS) for place in doors}
        self.place, self.turns, self.is_right = 0, 0, True
        return f"{self.length} places, {self.describe_place()}"

    def step(self, action: str) -> Turn:
        """Turn a key, or walk through a hall."""
        self.turns += 1
        color, key = self.colors.get(self.place), action.strip()
        is_legal = color is None or key in KEY_COLORS
        self.is_right &= color in (None, key)
        self.place += is_legal
        if self.turns == self.length:
            return Turn("", float(self.is_right and self.place == self.length), done=True)
        return Turn(f"{'' if is_legal else 'no key, '}{self.describe_place()}", 0.0)

    def describe_place(self) -> str:
        """Return the observation of a place."""
        mark = " lost" if self.marks_mistakes and not self.is_right else ""
        if self.place not in self.colors:
            return f"{self.place + 1} hall{mark}"
        number = list(self.colors).index(self.place) + 1
        return f"{self.place + 1} {self.colors[self.place]} {number} of {self.doors}{mark}"
