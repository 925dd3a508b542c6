"""Completions as a tree of prefixes, which continuations follow until they leave it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Branch = tuple[int, int]
"""A prefix and a sample: the m-th continuation of that prefix."""


@dataclass
class PrefixTree:
    """Every prefix of some completions, and the token that each of M noises draws after it.

    Attributes:
        drawn: Tokens that the noises draw after a prefix, M of them; none after the end of a completion.
        leads: Branch in which each of a prefix's M continuations ends; it has ended, or must be decoded.
        ended: One if the answer of a branch is right, else zero.

    """

    drawn: dict[int, Sequence[int]] = field(default_factory=dict, init=False)
    leads: dict[int, list[Branch]] = field(default_factory=dict, init=False)
    ended: dict[Branch, float] = field(default_factory=dict, init=False)
    _nodes: dict[tuple[int, int], int] = field(default_factory=dict, init=False)
    _origin: list[tuple[int, int]] = field(default_factory=list, init=False)
    _depth: list[int] = field(default_factory=list, init=False)

    def path(self, prompt: int, completion: Iterable[int]) -> list[int]:
        """Return the node of each prefix of a completion, the empty one first, the whole one last.

        Args:
            prompt: Number of the prompt.
            completion: Token ids of the completion.

        """
        path = [self.child(-1 - prompt, -1)]
        for token in completion:
            path.append(self.child(path[-1], token))
        return path

    def child(self, node: int, token: int) -> int:
        """Return the node of a prefix and one more token; a new one if there is none yet."""
        number = self._nodes.setdefault((node, token), len(self._depth))
        if number == len(self._depth):
            self._origin.append((node, token))
            self._depth.append(self._depth[node] + 1 if node >= 0 else 0)
        return number

    def depth(self, node: int) -> int:
        """Return the number of tokens of a prefix."""
        return self._depth[node]

    def prompt(self, node: int) -> int:
        """Return the number of a prefix's prompt."""
        while node >= 0:
            node = self._origin[node][0]
        return -1 - node

    def tokens(self, node: int) -> list[int]:
        """Return the token ids of a prefix."""
        tokens = []
        while self._origin[node][0] >= 0:
            node, token = self._origin[node]
            tokens.append(token)
        return tokens[::-1]

    def end_completion(self, node: int, right: float, samples: int) -> None:
        """Record that a completion ends here, and its outcome; all continuations of this node end with it."""
        self.leads[node] = [(node, -1)] * samples
        self.ended[node, -1] = right

    def follow_leads(self, nodes: Iterable[int]) -> None:
        """Set ``leads`` for some prefixes; the tokens of every prefix that they may reach have been drawn."""
        for node in sorted(set(nodes) - self.leads.keys(), key=lambda node: -self._depth[node]):
            children = [self.child(node, token) for token in self.drawn[node]]
            self.leads[node] = [
                self.leads[child][m] if child in self.leads else (child, m) for m, child in enumerate(children)
            ]
