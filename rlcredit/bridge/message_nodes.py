"""A stack on branches of message nodes, as verifiers 0.4 and prime-rl 559b447 have them; neither is imported."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import StackSource
from rlcredit.bridge.episode_facts import TurnValues

NODE_FIELDS = {"logprobs": "old_logprobs", "entropies": "entropy", "reference_logprobs": "ref_logprobs"}
"""Fields of nodes with one value per sampled token, and the arguments that they are for."""


def assign_node_credit(
    stack: StackSource,
    branches: Sequence[Sequence[Any]],
    rewards: Sequence[float | None],
    groups: Sequence[Hashable],
    turn_rewards: TurnValues | None = None,
    **arguments: Any,
) -> None:
    """Write the credit of sampled tokens into ``advantages`` of the nodes that hold them.

    A branch is an episode, and a message with sampled tokens is a turn. A node is an object or a dictionary with
    ``token_ids``, ``mask``, true on sampled tokens, and, where a stack reads them, ``logprobs``, ``entropies`` and
    ``reference_logprobs``, one per sampled token. ``logprobs`` are the sampler's unless you put the trainer's there.

    Args:
        stack: Stack, the name of a condition, or a list of operators.
        branches: Nodes of each branch, from root to leaf; a message with sampled tokens belongs to one branch.
        rewards: Reward of each branch, None where nobody could tell.
        groups: Group of each branch; equal ones answer one prompt.
        turn_rewards: Reward after each turn, a list for each branch; without, the reward is that of the last turn.
        **arguments: Arguments ``step`` and ``decode`` of :func:`rlcredit.bridge.assign_credit`.

    Example:
        >>> said = {"token_ids": [1, 2], "mask": [False, False]}
        >>> right, wrong = ({"token_ids": [3, 4], "mask": [False, True]} for _ in range(2))
        >>> assign_node_credit("sepa_paper/c1_grpo", [[said, right], [said, wrong]], [1.0, 0.0], groups=["a", "a"])
        >>> right["advantages"], wrong["advantages"], "advantages" in said
        ([0.5], [-0.5], False)

    """
    nodes = [node for branch in branches for node in branch if any(_read_field(node, "mask"))]
    if len({id(node) for node in nodes}) < len(nodes):
        raise ValueError("two branches share a message with sampled tokens, which holds one credit. Pass one of them.")
    ids, masks, turns = [], [], []
    for branch in branches:
        branch_masks = [_read_field(node, "mask") for node in branch]
        numbers = torch.tensor([any(mask) for mask in branch_masks]).cumsum(0) - 1
        ids.append(torch.tensor([token for node in branch for token in _read_field(node, "token_ids")]))
        masks.append(torch.tensor([bool(flag) for mask in branch_masks for flag in mask]))
        turns.append(numbers.repeat_interleave(torch.tensor([len(mask) for mask in branch_masks])))
    mask, token_ids = pad_sequence(masks, batch_first=True), pad_sequence(ids, batch_first=True, padding_value=-1)
    advantages = assign_credit(
        stack,
        mask=mask,
        rewards=rewards,
        groups=groups,
        completion_ids=token_ids,
        prompt_ids=token_ids.where(mask.cumsum(-1) == 0, -1),
        turn=pad_sequence(turns, batch_first=True),
        turn_rewards=[None] * len(branches) if turn_rewards is None else turn_rewards,
        giver="this list of nodes",
        **{argument: _spread_field(nodes, field, mask) for field, argument in NODE_FIELDS.items()},
        **arguments,
    )
    lengths = [sum(map(bool, _read_field(node, "mask"))) for node in nodes]
    for node, values in zip(nodes, advantages[mask].split(lengths), strict=True):
        if isinstance(node, Mapping):
            node["advantages"] = values.tolist()  # pyright: ignore[reportIndexIssue]
        else:
            node.advantages = values.tolist()


def _read_field(node: Any, name: str) -> Any:
    """Return a field of a node; None where it has none."""
    return node.get(name) if isinstance(node, Mapping) else getattr(node, name, None)


def _spread_field(nodes: Sequence[Any], field: str, mask: Tensor) -> Tensor | None:
    """Return the values of sampled tokens where these lie, None if some node has none."""
    lists = [_read_field(node, field) for node in nodes]
    if not all(lists):
        return None
    values = torch.tensor([value for numbers in lists for value in numbers], dtype=torch.float32)
    if len(values) != mask.sum():
        raise ValueError(f"{field} of nodes have {len(values)} values, and masks {mask.sum()} sampled tokens.")
    return torch.zeros(mask.shape).masked_scatter(mask, values)
