"""Where a condition stands over all organisms: its mean gain, and what many comparisons leave of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlcredit.campaign.declaration import ALPHA
from rlcredit.card.board import GAIN, Row, parse_row_number
from rlcredit.card.budget import BUDGETS
from rlcredit.card.card import NONE
from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.t_test import TTest, mean_difference_t_test, t_test


@dataclass(frozen=True)
class RankedCondition:
    """A condition on the board.

    Args:
        name: of the condition.
        cells: its rows, by organism.
        mean: paired gain on the way, in points, mean of these organisms; None for the baseline and without runs.
        p: of that mean, adjusted by Holm for all conditions on the board; one where there is no mean.

    """

    name: str
    cells: dict[str, Row]
    mean: TTest | None
    p: float = 1.0

    @property
    def gain(self) -> float:
        """Its mean gain, zero where there is none."""
        return self.mean.difference if self.mean else 0.0

    @property
    def is_significant(self) -> bool:
        """Whether its mean differs from zero after all comparisons."""
        return self.p <= ALPHA


def rank_conditions(rows: Sequence[Row]) -> list[RankedCondition]:
    """Return every condition of a board, what gains most on average first.

    Args:
        rows: of all conditions and organisms, one of each.

    """
    by_name: dict[str, dict[str, Row]] = {}
    for each in rows:
        by_name.setdefault(each["condition"], {})[each["organism"]] = each
    means = {name: _average_gain_tests(list(cells.values())) for name, cells in by_name.items()}
    tested = {name: mean.p for name, mean in means.items() if mean}
    adjusted = dict(zip(tested, holm_adjusted_p(list(tested.values())).tolist(), strict=True)) if tested else {}
    found = [RankedCondition(name, cells, means[name], adjusted.get(name, 1.0)) for name, cells in by_name.items()]
    return sorted(found, key=lambda standing: -standing.gain)


def reconstruct_gain_test(row: Row) -> TTest | None:
    """Return the paired gain of a row as a test, out of its interval and the pairs of its budget; None without one."""
    if not row[f"{GAIN}_low"]:
        return None
    df = len(BUDGETS[row["budget"]].seeds) - 1
    width = parse_row_number(row, f"{GAIN}_high") - parse_row_number(row, f"{GAIN}_low")
    unit = t_test(0.0, 1.0, df).interval
    return t_test(parse_row_number(row, GAIN), width / (unit.high - unit.low), df)


def is_gain_significant(test: TTest) -> bool:
    """Whether a gain differs from zero, taken alone."""
    return test.p <= ALPHA


def summarise_leaderboard(rows: Sequence[Row]) -> str:
    """Say in words how many comparisons come out, cell by cell and over all organisms; nothing without runs."""
    cells = [test for row in rows if row["verdict"] != NONE and (test := reconstruct_gain_test(row))]
    if not cells:
        return ""
    idle = sum(row["verdict"] == NONE for row in rows)
    beside = f" ({idle} more make no difference)" if idle else ""
    ahead, behind = (
        sum(sign * test.difference > 0 and is_gain_significant(test) for test in cells) for sign in (1, -1)
    )
    known = [standing for standing in rank_conditions(rows) if standing.mean]
    better, worse = ([each.name for each in known if each.is_significant and sign * each.gain > 0] for sign in (1, -1))
    return (
        f"Of {len(cells)} intervals{beside} {ahead} lie above zero and {behind} below; {len(cells) * ALPHA / 2:.1f} on "
        f"each side would if nothing made a difference. Of the means of {len(known)} conditions, corrected for all of "
        f"them, {_format_condition_names(better)} above zero and {_format_condition_names(worse)} below."
    )


def _average_gain_tests(rows: Sequence[Row]) -> TTest | None:
    tests = [test for test in map(reconstruct_gain_test, rows) if test]
    return mean_difference_t_test(tests) if tests else None


def _format_condition_names(names: Sequence[str]) -> str:
    if not names:
        return "none lies"
    return f"{len(names)} {'lies' if len(names) == 1 else 'lie'} ({', '.join(names)})"
