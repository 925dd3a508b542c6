"""Prefixes that completions of a group share: the tree that a group is, read without decoding anything.

A completion passes through every prefix of its tokens, from the empty one to the whole. The ids of sampled tokens
decide: what an environment says follows from them. Completions without a verdict do not count.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps


def companion_rows(rows: int, group_size: int, device: torch.device | None = None) -> Iterator[Tensor]:
    """Yield, ``group_size - 1`` times, the number of another row of the group for every row, until all had their turn.

    Args:
        rows: Number of rows B, groups of ``group_size`` neighbours.
        group_size: Completions per prompt, G.
        device: Device of the numbers.

    Example:
        >>> [rows.tolist() for rows in companion_rows(6, group_size=3)]
        [[1, 2, 0, 4, 5, 3], [2, 0, 1, 5, 3, 4]]

    """
    number = torch.arange(rows, device=device).view(-1, group_size)
    for shift in range(1, group_size):
        yield number.roll(-shift, dims=1).flatten()


def companion_sums(
    rewards: Tensor, judged: Tensor, completion_ids: Tensor, mask: Tensor, group_size: int
) -> tuple[Tensor, Tensor]:
    """Return the number of other completions that pass through each prefix, and the sum of their rewards.

    Column t belongs to the prefix from which token t is drawn; the last column to the whole.

    Args:
        rewards: Reward of each completion, shape ``(B,)``, groups of ``group_size`` neighbours.
        judged: False where there was no verdict; nobody's companion, shape ``(B,)``.
        completion_ids: Token ids, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Counts and sums, shape ``(B, T + 1)`` float64; zero beyond the whole.

    Example:
        >>> ids, judged = torch.tensor([[5, 6], [5, 7], [8, 6]]), torch.tensor([True, True, True])
        >>> counts, sums = companion_sums(torch.tensor([1.0, 0.0, 1.0]), judged, ids, ids > 0, group_size=3)
        >>> counts.tolist(), sums.tolist()
        ([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0]])

    """
    place = torch.arange(mask.shape[1] + 1, dtype=torch.int32, device=mask.device)
    places = number_places(pad(mask, (0, 1)))
    completion_ids, mask = (close_gaps(values, places[:, :-1]) for values in (completion_ids, mask))
    ids, peer_ids = completion_ids.where(mask, -1), completion_ids.where(mask, -2)  # padding differs from everything
    prefix_sums: list[tuple[Tensor, Tensor]] = []
    for companions in companion_rows(len(mask), group_size, mask.device):
        differs = pad(ids != peer_ids[companions], (0, 1), value=True)
        prefix_sums.append((companions, place.where(differs, len(place)).amin(-1, keepdim=True)))
    width = 1 + max((int(length.max()) for _, length in prefix_sums), default=-1)  # beyond, nobody has a companion
    counts = torch.zeros(len(mask), width, dtype=torch.float64, device=mask.device)
    sums = torch.zeros_like(counts)
    for companions, length in prefix_sums:
        passes = (place[:width] <= length) & judged[companions, None]
        counts = counts + passes
        sums = sums + rewards[companions, None].double().where(passes, 0)
    beyond = (0, len(place) - width)
    return open_gaps(pad(counts, beyond), places), open_gaps(pad(sums, beyond), places)


def shared_token_mask(completion_ids: Tensor, mask: Tensor, judged: Tensor, group_size: int) -> Tensor:
    """Mark tokens whose prefix another judged completion of the group passes through.

    Args:
        completion_ids: Token ids, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        judged: False where there was no verdict, shape ``(B,)``.
        group_size: Completions per prompt, G.

    Returns:
        Boolean, shape ``(B, T)``; of two judged completions or more, all first tokens are marked.

    Example:
        >>> ids, judged = torch.tensor([[5, 6, 9], [5, 7, 9]]), torch.tensor([True, True])
        >>> shared_token_mask(ids, ids > 0, judged, group_size=2).tolist()
        [[True, True, False], [True, True, False]]

    """
    counts, _ = companion_sums(judged.double(), judged, completion_ids, mask, group_size)
    return (counts[:, :-1] > 0) & mask


def prefix_values(rewards: Tensor, counts: Tensor, sums: Tensor, mask: Tensor) -> Tensor:
    """Return the mean reward of the completions that pass through each prefix, the completion itself among them.

    Args:
        rewards: Reward of each completion, shape ``(B,)``.
        counts: Counts of :func:`companion_sums`, shape ``(B, T + 1)``.
        sums: Sums of :func:`companion_sums`, shape ``(B, T + 1)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T + 1)`` float64: the empty prefix has the group's mean, a whole completion its own reward, and so
        has everything beyond.

    Example:
        >>> ids, judged = torch.tensor([[5, 6], [5, 7], [8, 6]]), torch.tensor([True, True, True])
        >>> rewards = torch.tensor([1.0, 0.0, 0.5])
        >>> prefix_values(rewards, *companion_sums(rewards, judged, ids, ids > 0, group_size=3), ids > 0).tolist()
        [[0.5, 0.5, 1.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.5]]

    """
    row_rewards = rewards.double()[:, None]
    return ((row_rewards + sums) / (1 + counts)).where(pad(mask, (0, 1)), row_rewards)
