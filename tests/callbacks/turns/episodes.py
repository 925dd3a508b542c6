"""Episodes of several turns, and a game of stopping in time whose gradients are known."""

import itertools

import torch

from tests.conftest import make_rollout

nan = torch.nan


def make_episodes(turn_rewards, states=None, group_size=None):
    """One group of episodes: two tokens a turn, and one of an observation between two turns."""
    rows, turns = len(turn_rewards), max(map(len, turn_rewards))
    rollout = make_rollout([float(sum(row)) for row in turn_rewards], group_size or rows, width=3 * turns)
    place = torch.arange(3 * turns)
    lengths = torch.tensor([len(row) for row in turn_rewards])[:, None]
    rollout.turn = (place // 3).where((place % 3 < 2) & (place < 3 * lengths), -1)
    rollout.mask = rollout.turn >= 0
    rollout.turn_rewards = torch.tensor([[*row, *[0.0] * (turns - len(row))] for row in turn_rewards])
    if states:
        rollout.states = torch.tensor([[*row, *[-1] * (turns - len(row))] for row in states])
    return rollout


def turn_credit(rollout):
    """The credit of every turn, after a look that all of its tokens have the same and no other token any."""
    assert not rollout.advantages[~rollout.mask].any()
    assert torch.equal(rollout.advantages[:, 0::3], rollout.advantages[:, 1::3])
    return [row[row_mask].tolist() for row, row_mask in zip(rollout.advantages[:, ::3], rollout.mask[:, ::3])]


def make_one_turn(rewards=(1.0, 0.0, 0.25, -3.5, 0.1, 0.7, 0.7, 2.5), judged=(True,) * 6 + (False, True)):
    """Two groups of completions that nothing answers, one of them without a verdict."""
    rollout = make_rollout(list(rewards))
    rollout.judged = torch.tensor(judged)
    return rollout


def is_equal_on_tokens(one, two):
    """Whether two rollouts have the same credit, bit for bit, on sampled tokens."""
    return torch.equal(one.advantages[one.mask], two.advantages[two.mask])


STOP_RIGHT = (0.9, 0.2, 0.3)
"""Chance that the outcome is 1 where an episode stops at turn 0, 1 or 2; it has to at the last."""

GO = (0.4, 0.5)
"""Chance that the policy goes on after turn 0 and 1; each time it does so the turn earns 1."""


def list_paths():
    """The rewards of every episode, its probability, and the derivative of each action by its logit of going on."""
    paths = []
    for stop, outcome in itertools.product(range(3), (0.0, 1.0)):
        chance = STOP_RIGHT[stop] if outcome else 1 - STOP_RIGHT[stop]
        scores = [0.0, 0.0, 0.0]
        for turn, go in enumerate(GO[: stop + 1]):
            chance *= go if turn < stop else 1 - go
            scores[turn] = 1 - go if turn < stop else -go
        paths.append(([1.0] * stop + [outcome] + [nan] * (2 - stop), chance, scores))
    return (torch.tensor(part, dtype=torch.float64) for part in zip(*paths))


def expected_gradient(credit_turns, group_size):
    """The gradient by both logits that an operator has on average, over all groups that there can be."""
    rewards, chances, scores = list_paths()
    groups = torch.tensor(list(itertools.product(range(len(rewards)), repeat=group_size)))
    advantages = credit_turns(rewards[groups.flatten()], group_size).nan_to_num().view(*groups.shape, 3)
    gradients = (advantages * scores[groups]).mean(1)
    return (chances[groups].prod(1)[:, None] * gradients).sum(0)[:2].tolist()


TRUE_GRADIENT = [0.24 * (1 + 0.75 - 0.9), 0.4 * 0.25 * (1 + 0.3 - 0.2)]
"""To go on at turn 1 earns 1 + 0.3 in place of 0.2, so that turn 1 is worth (1.3 + 0.2) / 2 = 0.75; to go on at turn 0
earns 1 + 0.75 in place of 0.9. Times p (1 - p), and the chance 0.4 to come to turn 1."""
