"""The one place where a card is put together: what two stacks make of one batch, wherever the batch comes from."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlcredit.cards.cache_key import fingerprint_configs
from rlcredit.cards.card import Card
from rlcredit.cards.card_batch import CreditedBatch
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.credit_effects import list_stack_warnings
from rlcredit.cards.finding import Finding
from rlcredit.cards.operator_text import describe_own_operators
from rlcredit.cards.stack_properties import check_stack_properties, describe_rewards_counted
from rlcredit.cli.explain import render_call
from rlcredit.credit.operator import CreditOperator
from rlcredit.outputs.code_versions import read_git_commit


def build_card(
    candidate: CardCondition,
    baseline: CardCondition,
    batch: CreditedBatch,
    base: CreditedBatch,
    sections: Mapping[str, Sequence[Finding]],
    *,
    origin: str,
    fingerprint: str,
    rewards: str = "",
    **fields: Any,
) -> Card:
    """Return a card that lacks its conclusion.

    Args:
        candidate: Condition that is judged.
        baseline: Condition with which it is compared.
        batch: Batch under the stack that is judged.
        base: Same completions under the baseline.
        sections: Findings, by section.
        origin: How the test policy or the file was named on the command line.
        fingerprint: Identifier of the test policy or the file.
        rewards: How rewards count, in words; empty if they are one for right and zero for wrong.
        **fields: Further fields of the card, by name: those that depend on where the batch comes from.

    """
    return Card(
        name=candidate.name,
        baseline=baseline.name,
        origins=(candidate.origin, origin, baseline.origin),
        stack=format_operator_stack(batch.stack),
        against=format_operator_stack(base.stack),
        commit=read_git_commit(),
        grounds=(fingerprint, fingerprint_configs([baseline.content])),
        properties=[*check_stack_properties(batch), *describe_rewards_counted(rewards)],
        warnings=list_stack_warnings(batch),
        sections=sections,
        page=batch.page,
        operators=describe_own_operators(batch.stack, base.stack),
        **fields,
    )


def format_operator_stack(stack: Sequence[CreditOperator]) -> str:
    """Return the operators of a stack, written as calls."""
    return " > ".join(render_call(operator) for operator in stack) or "no operators: REINFORCE"
