"""What a reader should know beside a verdict: what it rests on, and what else could have made the difference."""

from collections.abc import Iterator

from rlcredit.cards.budget import CARD_BUDGETS
from rlcredit.cards.card import BASELINE_VERDICT, NO_DIFFERENCE, UNTRAINED_VERDICT, Card
from rlcredit.cards.ranking import Leaderboard
from rlcredit.cards.training_outcome import CARD_MARGIN
from rlcredit.report.verdict_text import explain_verdict

LENGTH_RATIO = 1.5
"""Ratio of gradient lengths, or its inverse, from which on equal learning rates are no equal steps."""


def list_verdict_cautions(card: Card, board: Leaderboard) -> Iterator[str]:
    """Yield the sentences that belong beside the verdict of a card.

    Args:
        card: Card with the verdict.
        board: Rows of all conditions on the test policy that stand on the same page.

    """
    if card.verdict in (NO_DIFFERENCE, BASELINE_VERDICT, UNTRAINED_VERDICT):
        return
    if meaning := explain_verdict(card.verdict, CARD_MARGIN, "Held-out pass@1 after training"):
        yield meaning
    length, rate = card.finding("length"), card.finding("rate")
    if length and rate and rate.estimate == rate.baseline and not 1 / LENGTH_RATIO < length.estimate < LENGTH_RATIO:
        advice = "" if CARD_BUDGETS[card.budget].factors else " --budget standard gives each its own rate."
        yield (
            f"Its gradient is {length.estimate:.1f} times as long as that of {card.baseline}, and both learn at the "
            f"same rate, so part of the difference may come from the size of the steps.{advice}"
        )
    comparisons = [
        row for row in board.rows if row["verdict"] not in (NO_DIFFERENCE, BASELINE_VERDICT, UNTRAINED_VERDICT)
    ]
    if card.verdict in ("better", "worse") and len(comparisons) > 1:
        yield (
            f"It is one of {len(comparisons)} comparisons with {card.baseline} on {card.organism}, and no verdict here "
            "is corrected for that: at 5 %, one in twenty looks like a difference by chance."
        )
