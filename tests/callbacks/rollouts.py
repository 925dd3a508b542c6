"""Rollouts that tests of several operators share."""

import torch

from tests.conftest import make_rollout

THREE_AND_TWO = torch.tensor([[True, True, True], [True, True, False]])
"""The mask of a completion of three tokens and of one of two."""


def group(right, size):
    """Rewards of a group of which so many are right."""
    return torch.tensor([1.0] * right + [0.0] * (size - right))


def rollout_of(rewards, group_size, entropy, advantages=None):
    """Completions of equal length with the entropies and credit given."""
    rollout = make_rollout(rewards, group_size, width=len(entropy[0]))
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.entropy = torch.tensor(entropy)
    rollout.advantages = torch.tensor(advantages) if advantages else rollout.advantages
    return rollout


def numbers(metrics):
    return {name: float(value) for name, value in metrics.items()}


def of_all_quadrants():
    """A right and a wrong completion with tokens of high and of low entropy, one of them without credit."""
    entropy = [[0.0, 0.0, 2.0, 2.0], [2.0, 0.0, 0.0, 0.0]]
    return rollout_of([1.0, 0.0], 2, entropy, [[3.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -2.0, 0.0]])


def valued_rollout(rewards, values, mask=None, group_size=None):
    """Completions with the rewards and the values of prefixes given; of equal length and one group if none is said."""
    rollout = make_rollout(rewards, group_size or len(rewards), width=len(values[0]))
    rollout.mask = torch.ones_like(rollout.mask) if mask is None else mask
    rollout.values = torch.tensor(values)
    return rollout
