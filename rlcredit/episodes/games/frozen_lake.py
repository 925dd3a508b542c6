"""A frozen lake with holes, that is crossed step by step."""

import random
from itertools import product
from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

LAKE_MOVES = {"l": (0, -1), "r": (0, 1), "u": (-1, 0), "d": (1, 0)}
"""Rows down and columns to the right of each action."""


class FrozenLake(Environment):
    """Cross a frozen lake from the first field to the last without falling into a hole; the ice is not slippery.

    The first observation is the map, row by row, ``s`` the start, ``g`` the goal, ``h`` a hole and ``f`` ice, and the
    field where the policy stands, row and column: ``sfff fhfh fffh hffg, 1 1``. Every other one is a field. Actions are
    ``l``, ``r``, ``u`` and ``d``: left, right, up and down. Who walks against the edge stays. Any other action is
    answered by ``no move``. Every action costs a turn, and a hole ends the episode. The reward is one at the goal.

    Args:
        size: Number of rows and of columns.
        holes: Share of the fields between start and goal that are holes; some path is always left.
        turns: Most actions.

    """

    def __init__(self, size: int = 4, holes: float = 0.25, turns: int = 10) -> None:
        self.size, self.holes, self.turns = size, holes, turns

    def reset(self, example: "Example") -> str:
        """Draw a way of the shortest length, and holes beside it."""
        rng = random.Random(example.metadata["seed"])
        edge = self.size - 1
        moves = rng.sample("d" * edge + "r" * edge, 2 * edge)
        path = {(moves[:end].count("d"), moves[:end].count("r")) for end in range(2 * edge)}
        fields = list(product(range(self.size), repeat=2))
        self.map = {field: "h" if rng.random() < self.holes and field not in path else "f" for field in fields}
        self.map |= {(0, 0): "s", (edge, edge): "g"}
        rows = ("".join(self.map[field] for field in fields if field[0] == row) for row in range(self.size))
        self.field, self.left = (0, 0), self.turns
        return f"{' '.join(rows)}, 1 1"

    def step(self, action: str) -> Turn:
        """Walk to a neighbouring field."""
        self.left -= 1
        move = LAKE_MOVES.get(action.strip())
        if move is not None:
            row, column = self.field[0] + move[0], self.field[1] + move[1]
            self.field = (row, column) if (row, column) in self.map else self.field
        ground = self.map[self.field]
        if ground in "gh" or not self.left:
            return Turn("", float(ground == "g"), done=True)
        return Turn(f"{'' if move else 'no move, '}{self.field[0] + 1} {self.field[1] + 1}", 0.0)
