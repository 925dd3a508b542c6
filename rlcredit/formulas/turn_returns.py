"""Returns of turns, and turns compared with others of the group.

A table is float64 of shape ``(B, K)``, K turns of B episodes, and holds NaN where there is no turn or no verdict.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rlcredit.formulas.groups import group_deviations, group_std, judged_counts, leave_one_out_deviations
from rlcredit.formulas.turns import count_turns


def turn_reward_table(turn_rewards: Tensor, rewards: Tensor, turn: Tensor) -> Tensor:
    """Return the table of rewards; the last turn has whatever the episode earned beyond the turns before it.

    So the turns add up to the reward of the ledger, shaped or not. An episode without a token has one turn.

    Args:
        turn_rewards: Reward after each turn, shape ``(B, K)``.
        rewards: Reward of each episode, NaN where there was no verdict, shape ``(B,)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> turn_rewards, turn = torch.tensor([[0.25, 0.5], [1.0, 0.0]]), torch.tensor([[0, -1, 1], [0, 0, -1]])
        >>> turn_reward_table(turn_rewards, torch.tensor([0.5, 1.0]), turn).tolist()
        [[0.25, 0.25], [1.0, nan]]

    """
    place = torch.arange(turn_rewards.shape[1], device=turn.device)
    end = (count_turns(turn) - 1).clamp(min=0)[:, None]
    steps = turn_rewards.double().where(place < end, 0)
    table = steps.where(place != end, rewards.double()[:, None] - steps.sum(-1, keepdim=True))
    return table.where((place <= end) & ~rewards.isnan()[:, None], torch.nan)


def discounted_returns(table: Tensor, gamma: float) -> Tensor:
    r"""Return the table of what turns and those behind them have earned, :math:`\sum_{l \ge k} \gamma^{l-k} r_l`."""
    returns, following = torch.empty_like(table), table.new_zeros(len(table))
    for place in reversed(range(table.shape[1])):
        following = table[:, place].nan_to_num() + gamma * following
        returns[:, place] = following
    return returns.where(~table.isnan(), torch.nan)


def centred_values(values: Tensor, group_size: int, normalize_std: bool = False) -> Tensor:
    """Return the distance from the group's mean, divided by its deviation if asked, as ``GRPO`` does; ``(P, G)``."""
    deviations, _ = group_deviations(values, group_size)
    return deviations / (group_std(values, group_size) + 1e-6) if normalize_std else deviations


def compare_turns(compare: Callable[[Tensor, int], Tensor], table: Tensor, group_size: int) -> Tensor:
    """Apply a function of values and group size to the turns of one number of each group, shape ``(B, K)``."""
    turns = table.shape[1]
    columns = table.view(-1, group_size, turns).transpose(1, 2).flatten()
    return compare(columns, group_size).view(-1, turns, group_size).transpose(1, 2).reshape_as(table)


def leave_one_out_turns(table: Tensor, group_size: int, lone_values: Tensor) -> Tensor:
    """Return the distance of each value from the mean over the group's other episodes that have a turn of this number.

    Args:
        table: Value of each turn.
        group_size: Episodes per prompt, G.
        lone_values: What a turn gets that no other episode of the group has, NaN where there is no turn or verdict,
            shape ``(B, K)`` like the result.

    """
    deviations = compare_turns(leave_one_out_deviations, table, group_size)
    visits = compare_turns(lambda values, size: judged_counts(values, size).expand(-1, size), table, group_size)
    return deviations.where((visits > 1) & ~table.isnan(), lone_values)


def state_means(table: Tensor, states: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return the tables of means over the group's turns on the same state, this one among them, and of their numbers.

    Args:
        table: Value of each turn.
        states: Hash of the observation that each turn acts on, shape ``(B, K)`` int64.
        group_size: Episodes per prompt, G.

    Example:
        >>> means, visits = state_means(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[7, 8], [7, 9]]), 2)
        >>> means.tolist(), visits.tolist()
        ([[2.0, 2.0], [2.0, 4.0]], [[2.0, 1.0], [2.0, 1.0]])

    """
    turn_mask = ~table.isnan()
    groups = torch.arange(len(table), device=table.device).div(group_size, rounding_mode="floor")
    visits = torch.stack([groups[:, None].expand_as(states)[turn_mask], states[turn_mask]])
    kinds, numbers = visits.unique(dim=1, return_inverse=True)
    counts = torch.bincount(numbers, minlength=kinds.shape[1]).to(table.dtype)
    means = torch.zeros_like(counts).index_add(0, numbers, table[turn_mask]) / counts
    blank = torch.full_like(table, torch.nan)
    return blank.masked_scatter(turn_mask, means[numbers]), blank.masked_scatter(turn_mask, counts[numbers])
