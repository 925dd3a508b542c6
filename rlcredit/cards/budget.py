"""The budgets of report cards, declared before anything runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CardBudget:
    """The measurements of a card and their sizes.

    Args:
        name: Name of the budget.
        prompts: Prompts in the measured batch, a multiple of ``batch``.
        completions: Completions per prompt.
        batch: Prompts whose gradients are summed into one batch gradient, at most a third of ``prompts``.
        asked: Completions whose true credit is measured; none if zero.
        samples: Continuations per prefix.
        seeds: Seeds of the paired runs; empty where nothing is trained.
        steps: Rollouts per run; each is used for as many updates as a condition configures.
        evaluations: Evaluations per run after the first one, at equal distances; divides ``steps``.
        questions: Held-out questions.
        factors: Factors by which learning rates are multiplied to find each condition's own; empty to leave them as
            they are.
        tuning_seeds: Seeds of the runs with each factor.

    """

    name: str
    prompts: int
    completions: int
    batch: int
    asked: int
    samples: int
    seeds: tuple[int, ...]
    steps: int
    evaluations: int
    questions: int
    factors: tuple[float, ...] = ()
    tuning_seeds: tuple[int, ...] = ()


BATCH_BUDGET = CardBudget("batch", 24, 8, 4, 16, 32, (), 0, 0, 0)
QUICK_BUDGET = CardBudget("quick", 48, 8, 4, 16, 64, tuple(range(6)), 30, 3, 256)
STANDARD_BUDGET = CardBudget("standard", 96, 8, 4, 32, 64, tuple(range(8)), 60, 6, 256, (0.5, 1.0, 2.0), (100, 101))
FULL_BUDGET = CardBudget(
    "full", 192, 8, 4, 64, 64, tuple(range(8)), 100, 10, 512, (0.5, 1.0, 2.0, 4.0), (100, 101, 102)
)

CARD_BUDGETS = {budget.name: budget for budget in (BATCH_BUDGET, QUICK_BUDGET, STANDARD_BUDGET, FULL_BUDGET)}
"""By the names they have on the command line."""
