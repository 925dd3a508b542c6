"""Branches of message nodes, in the shape that verifiers and prime-rl give them: credit is written back per node."""

from dataclasses import dataclass, field

import pytest

from callbacks import GRPO, GTPO
from rlcredit.bridge.message_nodes import assign_node_credit
from rlcredit.credit.contract import StackError
from tests.rlcredit.bridge.test_turns import Remaining, Visits


@dataclass
class Node:
    """Fields of ``verifiers.v1.graph.MessageNode`` that hold tokens and credit."""

    token_ids: list[int]
    mask: list[bool]
    sampled: bool = False
    parent: int | None = None
    message: str = ""
    logprobs: list[float] = field(default_factory=list)
    advantages: list[float] | None = None
    reference_logprobs: list[float] | None = None
    entropies: list[float] | None = None


def say(*tokens):
    """A message of the policy behind the two tokens of a generation prompt."""
    return Node([1, 2, *tokens], [False] * 2 + [True] * len(tokens), True, logprobs=[-0.5 * token for token in tokens])


def hear(*tokens):
    """A message that was not sampled."""
    return Node([*tokens], [False] * len(tokens))


def make_branches():
    """Two episodes of one prompt: of two turns, between which the environment says 9 9, and of one turn."""
    return [[hear(7, 7), say(3, 4), hear(9, 9), say(5)], [hear(7, 7), say(6)]]


def test_credit_is_written_to_the_sampled_tokens_of_every_node():
    branches = make_branches()
    assign_node_credit([Remaining()], branches, [1.0, 0.5], groups=["a", "a"], turn_rewards=[[0.25, 0.75], [0.5]])
    assert [[node.advantages for node in branch] for branch in branches] == [
        [None, [1.0, 1.0], None, [0.75]],
        [None, [0.5]],
    ]
    assign_node_credit([Remaining()], branches, [1.0, None], groups=["a", "a"])
    assert [node.advantages for node in branches[0] if node.sampled] == [[1.0, 1.0], [1.0]]
    assert branches[1][1].advantages == [0.0]


def test_dictionaries_have_the_credit_of_objects_with_these_fields():
    branches = make_branches()
    copies = [[vars(node).copy() for node in branch] for branch in branches]
    for each in (branches, copies):
        assign_node_credit([GRPO(), GTPO()], each, [1.0, 0.0], groups=["a", "a"])
    assert [[node.advantages for node in branch] for branch in branches] == [
        [node["advantages"] for node in branch] for branch in copies
    ]
    first, second = branches[0][1].advantages
    assert 0 < first < second  # the second token was less likely


def test_turns_act_on_the_prompt_and_on_the_messages_between():
    branches = make_branches()
    assign_node_credit([Visits()], branches, [1.0, 0.0], groups=["a", "a"])
    assert [node.advantages for branch in branches for node in branch if node.sampled] == [[2.0, 2.0], [1.0], [2.0]]


def test_what_the_nodes_do_not_hold_or_hold_twice_is_refused():
    branches = make_branches()
    branches[1][1].logprobs = []
    with pytest.raises(StackError, match="GTPO needs `old_logprobs`, which this list of nodes does not give"):
        assign_node_credit([GRPO(), GTPO()], branches, [1.0, 0.0], groups=["a", "a"])
    branches[0][1].logprobs = [-1.0] * 3
    branches[1][1].logprobs = [-1.0]
    with pytest.raises(ValueError, match="logprobs of nodes have 5 values, and masks 4 sampled tokens"):
        assign_node_credit([GRPO(), GTPO()], branches, [1.0, 0.0], groups=["a", "a"])
    with pytest.raises(ValueError, match="two branches share a message with sampled tokens"):
        assign_node_credit([GRPO()], [branches[0], branches[0][:2]], [1.0, 0.0], groups=["a", "a"])
