"""Kinds of budgets of tokens, and the counts that add up to each."""

from collections.abc import Mapping

BUDGET_KINDS = {
    "decoded_tokens": ("decoded",),
    "backward_tokens": ("backward",),
    "rollout_tokens": ("decoded", "prefill"),
}
"""Counts that add up to each kind of budget; rollouts are decoded and read, and floating-point operations could only be
estimated."""


def sum_budget_counts(budget: str, counts: Mapping[str, float]) -> float:
    """Return the tokens that count for a kind of budget.

    Example:
        >>> sum_budget_counts("rollout_tokens", {"decoded": 120, "prefill": 16, "backward": 90})
        136

    """
    return sum(counts[kind] for kind in BUDGET_KINDS[budget])
