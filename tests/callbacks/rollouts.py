"""Rollouts that tests of several operators share."""

import torch

from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.turns import count_turns, mark_turns, number_turns
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
    rollout.turn = number_turns(rollout.mask)
    rollout.entropy = torch.tensor(entropy)
    rollout.advantages = torch.tensor(advantages) if advantages else rollout.advantages
    return rollout


def numbers(metrics):
    return {name: float(value) for name, value in metrics.items()}


def of_all_quadrants():
    """A right and a wrong completion with tokens of high and of low entropy, one of them without credit."""
    entropy = [[0.0, 0.0, 2.0, 2.0], [2.0, 0.0, 0.0, 0.0]]
    return rollout_of([1.0, 0.0], 2, entropy, [[3.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -2.0, 0.0]])


def rollout_of_ids(rewards, ids):
    """One group of completions of these token ids, of any lengths."""
    rollout = make_rollout(rewards, len(ids), width=max(2, *map(len, ids)))
    rollout.mask = torch.tensor([[place < len(row) for place in range(rollout.mask.shape[1])] for row in ids])
    rollout.turn = number_turns(rollout.mask)
    rollout.completion_ids = torch.full(rollout.mask.shape, 7)  # padding that is a token elsewhere
    for row, tokens in enumerate(ids):
        rollout.completion_ids[row, : len(tokens)] = torch.tensor(tokens)
    return rollout


FORKED = ([1.0, 0.0, 0.0, 0.0], [[1, 2, 3], [1, 2, 4], [1, 5, 3], [6, 2, 3]])
"""Rewards and ids of four completions, of which three share the first token and two the second as well."""


class TabularPolicy:
    """A policy with free logits for every prefix, so that gradients are exact and prefixes tell states apart."""

    def __init__(self, words, seed=0):
        self.words, self.states = words, {}
        self.generator = torch.Generator().manual_seed(seed)

    def logits(self, prefix):
        """Logits of the next token, drawn when a prefix is first met."""
        if prefix not in self.states:
            drawn = torch.randn(self.words, generator=self.generator, dtype=torch.float64)
            self.states[prefix] = drawn.requires_grad_()
        return self.states[prefix]

    def logprobs(self, tokens):
        """Log-probability of every token of a completion."""
        steps = [self.logits(tuple(tokens[:t])).log_softmax(-1)[token] for t, token in enumerate(tokens)]
        return torch.stack(steps)

    def gradient(self, loss):
        """Gradient of a loss with respect to the logits of all states met, in order of the states."""
        order = sorted(self.states)
        found = torch.autograd.grad(loss, [self.states[key] for key in order], allow_unused=True, retain_graph=True)
        return torch.cat([torch.zeros(self.words) if grad is None else grad for grad in found])


def episodes_of(turns, rewards, group_size=2):
    """Episodes whose rows are written as letters, one a token: lower case where the policy speaks, else upper case.

    The reward of turn k is k + 1, and row b acts on the state 10 b + k.
    """
    rows, width = len(turns), max(map(len, turns))
    mask = torch.tensor([[place < len(row) and row[place].islower() for place in range(width)] for row in turns])
    ids = torch.tensor([[*map(ord, row.ljust(width, "#"))] for row in turns])
    numbers = number_turns(mask)
    count = max(1, int(count_turns(numbers).max()))
    has_turn = mark_turns(numbers, count)
    noise = torch.Generator().manual_seed(0)
    return Rollout(
        step=0,
        group_size=group_size,
        prompt_ids=torch.ones(rows, 3, dtype=torch.long),
        completion_ids=ids,
        mask=mask,
        old_logprobs=-torch.rand(mask.shape, generator=noise),
        entropy=torch.rand(mask.shape, generator=noise),
        correct=torch.tensor(rewards),
        tokens=[list(row) for row in turns],
        turn_rewards=(1.0 + torch.arange(count)).where(has_turn, 0),
        states=(10 * torch.arange(rows)[:, None] + torch.arange(count)).where(has_turn, -1),
    )


def valued_rollout(rewards, values, mask=None, group_size=None):
    """Completions with the rewards and the values of prefixes given; of equal length and one group if none is said."""
    rollout = make_rollout(rewards, group_size or len(rewards), width=len(values[0]))
    rollout.mask = torch.ones_like(rollout.mask) if mask is None else mask
    rollout.turn = number_turns(rollout.mask)
    rollout.values = torch.tensor(values)
    return rollout
