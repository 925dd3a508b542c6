"""Episodes as blocks, one for each turn, as pages, tables and terminals show them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple


class TurnBlock(NamedTuple):
    """A turn of an episode.

    Attributes:
        start: Number of sampled tokens before it.
        end: Number of sampled tokens up to its end.
        reward: Reward of the turn; None where nobody knows any.
        answer: What the environment answered; empty if nothing.

    """

    start: int
    end: int
    reward: float | None
    answer: str


def list_turn_blocks(turn: Sequence[int], texts: Sequence[str], rewards: Sequence[float | None]) -> list[TurnBlock]:
    """Return the turns of a row.

    Args:
        turn: Number of the turn of each sampled token, -1 elsewhere, T of them.
        texts: Text of each token up to the last sampled one.
        rewards: Reward of each turn; of further turns none is known.

    Example:
        >>> list_turn_blocks([0, 0, -1, 1], ["4", "+", "no", "5"], [0.5])
        [TurnBlock(start=0, end=2, reward=0.5, answer='no'), TurnBlock(start=2, end=3, reward=None, answer='')]

    """
    columns = [column for column, number in enumerate(turn) if number >= 0]
    starts = [place for place in range(len(columns)) if not place or turn[columns[place]] != turn[columns[place - 1]]]
    blocks = []
    for number, (start, end) in enumerate(pairwise([*starts, len(columns)])):
        gap = texts[columns[end - 1] + 1 : columns[end] if end < len(columns) else columns[end - 1]]
        blocks.append(TurnBlock(start, end, rewards[number] if number < len(rewards) else None, "".join(gap).strip()))
    return blocks


def write_messages(blocks: Sequence[TurnBlock], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return an episode as messages: the policy's turns with their rewards, and what the environment answered.

    Args:
        blocks: Turns of the episode.
        texts: Text of each sampled token.

    Example:
        >>> write_messages([TurnBlock(0, 2, 0.5, "no")], ["4", "+"])
        [{'role': 'assistant', 'content': '4+', 'reward': 0.5}, {'role': 'user', 'content': 'no'}]

    """
    messages: list[dict[str, Any]] = []
    for block in blocks:
        action = "".join(texts[block.start : block.end]).rstrip("\n")
        messages.append({"role": "assistant", "content": action, "reward": block.reward})
        if block.answer:
            messages.append({"role": "user", "content": block.answer})
    return messages
