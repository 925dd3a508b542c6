"""The places of evaluations in the course of a run: steps, or tokens of a budget."""

from collections.abc import Mapping, Sequence

from rlcredit.base.budget_kinds import sum_budget_counts
from rlcredit.campaign.declaration import DeclaredBudget

Counts = Mapping[int, Mapping[str, int] | None]
"""Tokens by kind at every evaluated step; None where a run has not counted them."""


def locate_marks(token_counts: Mapping[int, float], marks: Sequence[int]) -> dict[int, int]:
    """Return the first evaluated step at or over each mark; marks that were not reached are left out.

    Args:
        token_counts: Tokens counted by every evaluated step.
        marks: Numbers of tokens, ascending.

    Example:
        >>> locate_marks({0: 0, 7: 52, 13: 104}, marks=[0, 50, 100, 150])
        {0: 0, 50: 7, 100: 13}

    """
    steps = {mark: [step for step in sorted(token_counts) if token_counts[step] >= mark] for mark in marks}
    return {mark: late_steps[0] for mark, late_steps in steps.items() if late_steps}


def locate_evaluations(counts: Counts, budget: DeclaredBudget | None) -> dict[int, int]:
    """Return the step of each evaluation by its place: the step itself, or the mark of a budget that it belongs to.

    Args:
        counts: Tokens counted at every evaluated step.
        budget: Budget of the campaign; None if it counts steps.

    """
    if budget is None:
        return {step: step for step in counts}
    used = {step: sum_budget_counts(budget.key, tokens) for step, tokens in counts.items() if tokens}
    return locate_marks(used, budget.marks)
