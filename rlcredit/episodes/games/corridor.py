"""A corridor of halls and locked doors, whose dial is the share of turns that matter."""

import random
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

DOOR_COLORS: tuple[str, ...] = ("red", "blue", "gold", "green")


class Corridor(Environment):
    """Walk through a corridor of halls and locked doors; a wrong key goes unnoticed until the end.

    The first observation gives the numbers of places and of doors and the key of each colour, as in ``16 places 4
    doors, red 2 blue 0 gold 3 green 1, 1 hall``, and ends with the first place. Every other observation is a place: its
    number, and ``hall`` or the colour of a door. In a hall any action leads on. At a door a key is turned, 0 to 3, and
    leads on, be it the right one or not; anything else is answered by ``no key`` and leaves the policy where it is. The
    episode ends after as many turns as there are places. The reward is one if all places lie behind and every door was
    opened by its key.

    Args:
        rho: Share of places that are doors, at least one: of turns that matter.
        length: Number of places, and of turns.

    """

    def __init__(self, rho: float = 0.25, length: int = 16) -> None:
        if not 0 < rho <= 1:
            raise ValueError(f"Corridor expects rho above 0 and up to 1, got {rho}. It is the share of doors.")
        self.length, self.doors = length, max(1, round(rho * length))

    def reset(self, example: "Example") -> str:
        """Begin at the first place."""
        rng = random.Random(example.metadata["seed"])
        self.keys = dict(zip(DOOR_COLORS, rng.sample("0123", 4), strict=True))
        doors = set(rng.sample(range(self.length), self.doors))
        self.places = [rng.choice(DOOR_COLORS) if place in doors else "hall" for place in range(self.length)]
        self.place, self.turns, self.is_right = 0, 0, True
        keys = " ".join(f"{color} {key}" for color, key in self.keys.items())
        return f"{self.length} places {self.doors} doors, {keys}, 1 {self.places[0]}"

    def step(self, action: str) -> Turn:
        """Turn a key, or walk through a hall."""
        self.turns += 1
        key = self.keys.get(self.places[self.place])
        is_legal = key is None or action.strip() in self.keys.values()
        self.is_right &= key in (None, action.strip())
        self.place += is_legal
        if self.turns == self.length:
            return Turn("", float(self.is_right and self.place == self.length), done=True)
        return Turn(f"{'' if is_legal else 'no key, '}{self.place + 1} {self.places[self.place]}", 0.0)
