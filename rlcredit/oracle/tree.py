"""Completions as a tree of prefixes, along which continuations walk until they leave it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Branch = tuple[int, int]
"""A prefix and a sample: the m-th continuation of that prefix."""


@dataclass
class Tree:
    """Every prefix of some completions, and what each of M noises draws behind it.

    Attributes:
        drawn: tokens that the noises draw behind a prefix, M of them; none behind the end of a completion.
        leads: where the M continuations of a prefix come to: a branch that ended, or one to be decoded.
        ended: whether what a branch came to is right.

    """

    drawn: dict[int, Sequence[int]] = field(default_factory=dict, init=False)
    leads: dict[int, list[Branch]] = field(default_factory=dict, init=False)
    ended: dict[Branch, float] = field(default_factory=dict, init=False)
    _nodes: dict[tuple[int, int], int] = field(default_factory=dict, init=False)
    _origin: list[tuple[int, int]] = field(default_factory=list, init=False)
    _depth: list[int] = field(default_factory=list, init=False)

    def path(self, prompt: int, completion: Iterable[int]) -> list[int]:
        """Name each prefix of a completion, the empty one first, the whole one last.

        Args:
            prompt: number of the prompt.
            completion: token ids.

        """
        path = [self.child(-1 - prompt, -1)]
        for token in completion:
            path.append(self.child(path[-1], token))
        return path

    def child(self, node: int, token: int) -> int:
        """Name a prefix and one more token."""
        found = self._nodes.setdefault((node, token), len(self._depth))
        if found == len(self._depth):
            self._origin.append((node, token))
            self._depth.append(self._depth[node] + 1 if node >= 0 else 0)
        return found

    def depth(self, node: int) -> int:
        """Return how many tokens a prefix has."""
        return self._depth[node]

    def prompt(self, node: int) -> int:
        """Return the number of a prefix's prompt."""
        while node >= 0:
            node = self._origin[node][0]
        return -1 - node

    def tokens(self, node: int) -> list[int]:
        """Return the token ids of a prefix."""
        found = []
        while self._origin[node][0] >= 0:
            node, token = self._origin[node]
            found.append(token)
        return found[::-1]

    def end(self, node: int, right: float, samples: int) -> None:
        """Note that a completion ends here, and how; all continuations of the whole end with it."""
        self.leads[node] = [(node, -1)] * samples
        self.ended[node, -1] = right

    def walk(self, nodes: Iterable[int]) -> None:
        """Find out where every continuation of some prefixes leads; what they may meet has been drawn."""
        for node in sorted(set(nodes) - self.leads.keys(), key=lambda node: -self._depth[node]):
            follows = [self.child(node, token) for token in self.drawn[node]]
            self.leads[node] = [
                self.leads[after][m] if after in self.leads else (after, m) for m, after in enumerate(follows)
            ]
