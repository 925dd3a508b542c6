"""Add cards to the board that ships, and draw and print it whole.

rlcredit card --shipped --organism all
python -m studies.leaderboard.keep_cards cards

Cards against GRPO count. Rows of the same condition, organism and budget are replaced. Printed are its tables, as
Markdown.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rlcredit.cards import leaderboard
from rlcredit.cards.card import Card
from rlcredit.cards.card_options import USUAL_BASELINE
from rlcredit.cards.card_policies import list_policy_names
from rlcredit.cards.ranking import SHIPPED_CARDS, Row, keep_latest_rows, summarise_card, summarise_leaderboard
from studies import csv_rows
from studies.leaderboard.predictors import correlate_predictors, make_predictor_table

PICTURE = Path(__file__).parents[1] / "pictures" / "leaderboard.png"


def merge_leaderboard_rows(kept: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return all rows, new ones in place of kept ones; by organism as they are listed, then by condition."""
    rows = keep_latest_rows([*kept, *new])
    return sorted(rows, key=lambda row: (list_policy_names().index(row["organism"]), row["budget"], row["condition"]))


def main() -> None:
    """Write the board, its picture, and its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cards", type=Path, help="folder of all cards")
    parser.add_argument("--board", type=Path, default=SHIPPED_CARDS)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    args = parser.parse_args()
    found = [
        summarise_card(card)
        for card in Card.read_all(args.cards)
        if card.has_shipped_names and card.baseline == USUAL_BASELINE
    ]
    if not found:
        parser.error(f"{args.cards} has no card. `rlcredit card` makes them.")
    rows = merge_leaderboard_rows(csv_rows.read_csv_rows(args.board) if args.board.is_file() else [], found)
    csv_rows.write_csv_rows(args.board, rows)
    leaderboard.plot_condition_gains(rows, args.picture)
    predictors = make_predictor_table(list(correlate_predictors(rows))).to_markdown()
    print("\n\n".join([leaderboard.render_leaderboard_table(rows), summarise_leaderboard(rows), predictors]))


if __name__ == "__main__":
    main()
