"""Turns of episodes that another trainer has played: their rewards, and what each acts on."""

from array import array
from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.contract import StackError
from rlcredit.formulas.turns import count_turns, find_turn_ends, find_turn_starts

TurnValues = Tensor | Sequence[Sequence[float | None] | None]
"""Values of turns: a table of shape ``(B, K)``, or a list for each episode, or None for one of zeros."""


def read_turn_numbers(turn: Tensor, mask: Tensor) -> Tensor:
    """Return the number of the turn of each sampled token, -1 elsewhere; refuse those that do not count from zero."""
    numbers = turn.long().where(mask, -1)
    previous = pad(numbers.cummax(-1).values, (1, 0), value=-1)[:, :-1]
    if (mask & (numbers != previous.clamp(min=0)) & (numbers != previous + 1)).any():
        raise ValueError("turn does not count the turns of every row. Number them from zero, one by one.")
    return numbers


def read_turn_values(name: str, values: TurnValues, turn: Tensor, filler: float, spare_turns: int = 0) -> Tensor:
    """Return the value of each turn and a filler behind the last, shape ``(B, K)``, int64 or float64 as the filler.

    Args:
        name: Name of the values, for messages.
        values: Values as they were given; a table may be wider than an episode has turns, a list may not.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.
        filler: Value where there is no turn.
        spare_turns: Turns at the end that a list may leave out.

    Raises:
        StackError: there are values for other turns than an episode has.

    """
    is_table, counts = isinstance(values, Tensor), count_turns(turn).tolist()
    rows: Sequence[Sequence[float | None] | None] = values.tolist() if isinstance(values, Tensor) else values
    dtype = torch.int64 if isinstance(filler, int) else torch.float64
    table = torch.full((len(turn), max(1, *counts)), filler, dtype=dtype, device=turn.device)
    if len(rows) != len(turn):
        raise ValueError(f"{name} has {len(rows)} rows, expected {len(turn)}: one per completion.")
    for row, (row_values, count) in enumerate(zip(rows, counts, strict=True)):
        numbers = [0] * count if row_values is None else [number or 0 for number in row_values]
        if count and not count - spare_turns <= len(numbers) <= (len(numbers) if is_table else count):
            raise StackError(
                f"{name} has {len(numbers)} values in row {row}, expected {count}: one for each turn, that is for what "
                "stands between two gaps of the mask."
            )
        numbers = numbers[:count]
        table[row, : len(numbers)] = torch.tensor(numbers, dtype=dtype, device=turn.device)
    return table


def read_turn_rewards(turn_rewards: TurnValues, rewards: Tensor, turn: Tensor) -> Tensor:
    """Return the reward after each turn, shape ``(B, K)``; the last has whatever its episode earned beyond the others.

    Args:
        turn_rewards: Rewards as they were given; that of a last turn may be left out.
        rewards: Reward of each episode, NaN where nobody could tell, shape ``(B,)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> turn = torch.tensor([[0, -1, 1], [0, 0, 0]])
        >>> read_turn_rewards([[0.25], None], torch.tensor([1.0, 0.5]), turn).tolist()
        [[0.25, 0.75], [0.5, 0.0]]

    """
    table = read_turn_values("turn_rewards", turn_rewards, turn, 0.0, spare_turns=1)
    last_turn = (count_turns(turn) - 1).clamp(min=0)[:, None]
    table = table.where(torch.arange(table.shape[1], device=turn.device) < last_turn, 0)
    remainder = rewards.double()[:, None] - table.sum(-1, keepdim=True)
    table = table.scatter(1, last_turn, remainder).where(~rewards.isnan()[:, None], 0)
    if not table.isfinite().all():
        raise ValueError("turn_rewards holds a number that is not finite. Pass None or zero for no reward.")
    return table.float()


def hash_observations(turn: Tensor, token_ids: Tensor, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return a hash of the token ids between each turn and the one before, a list for each episode.

    Args:
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.
        token_ids: Token ids of the episodes, environment included, shape ``(B, T)``.
        prompts: Token ids that each first turn acts on, or another number for them; -1 is padding.

    Example:
        >>> turn, ids = torch.tensor([[0, -1, 1, -1, 2]] * 2), torch.tensor([[5, 9, 5, 8, 5], [6, 9, 5, 9, 5]])
        >>> one, other = hash_observations(turn, ids, [[1, 2], [1, 2]])
        >>> one[:2] == other[:2], one[2] == other[2], other[1] == other[2]
        (True, False, True)

    """
    starts, ends = (find(turn).nonzero().tolist() for find in (find_turn_starts, find_turn_ends))
    rows, numbers = token_ids.tolist(), turn.tolist()
    states: list[list[int]] = [[] for _ in rows]
    for (row, start), (previous_row, end) in zip(starts, [(-1, -1), *ends[:-1]], strict=True):
        if numbers[row][start] == len(states[row]):  # or else a turn goes on behind tokens that are none of its own
            observation = rows[row][end + 1 : start] if row == previous_row else [n for n in prompts[row] if n >= 0]
            digest = blake2b(array("q", observation).tobytes(), digest_size=8).digest()
            states[row].append(int.from_bytes(digest, "little") >> 1)  # 63 bits: no hash is -1
    return states
