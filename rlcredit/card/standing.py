"""Where a condition stands over all organisms: its mean gain, and what many comparisons leave of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlcredit.campaign.declaration import ALPHA
from rlcredit.card.board import GAIN, Row, number
from rlcredit.card.budget import BUDGETS
from rlcredit.card.card import NONE
from rlcredit.statistics.adjusted_p import holm
from rlcredit.statistics.t_test import TTest, mean_t, t_test


@dataclass(frozen=True)
class Standing:
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
    def decided(self) -> bool:
        """Whether its mean differs from zero after all comparisons."""
        return self.p <= ALPHA


def standings(rows: Sequence[Row]) -> list[Standing]:
    """Return every condition of a board, what gains most on average first.

    Args:
        rows: of all conditions and organisms, one of each.

    """
    by_name: dict[str, dict[str, Row]] = {}
    for each in rows:
        by_name.setdefault(each["condition"], {})[each["organism"]] = each
    means = {name: _mean(list(cells.values())) for name, cells in by_name.items()}
    tested = {name: mean.p for name, mean in means.items() if mean}
    adjusted = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True)) if tested else {}
    found = [Standing(name, cells, means[name], adjusted.get(name, 1.0)) for name, cells in by_name.items()]
    return sorted(found, key=lambda standing: -standing.gain)


def gain_of(row: Row) -> TTest | None:
    """Return the paired gain of a row as a test, out of its interval and the pairs of its budget; None without one."""
    if not row[f"{GAIN}_low"]:
        return None
    df = len(BUDGETS[row["budget"]].seeds) - 1
    width = number(row, f"{GAIN}_high") - number(row, f"{GAIN}_low")
    unit = t_test(0.0, 1.0, df).interval
    return t_test(number(row, GAIN), width / (unit.high - unit.low), df)


def apart(test: TTest) -> bool:
    """Whether a gain differs from zero, taken alone."""
    return test.p <= ALPHA


def said(rows: Sequence[Row]) -> str:
    """Say in words how many comparisons come out, cell by cell and over all organisms; nothing without runs."""
    cells = [test for row in rows if row["verdict"] != NONE and (test := gain_of(row))]
    if not cells:
        return ""
    idle = sum(row["verdict"] == NONE for row in rows)
    beside = f" ({idle} more make no difference)" if idle else ""
    ahead, behind = (sum(sign * test.difference > 0 and apart(test) for test in cells) for sign in (1, -1))
    known = [standing for standing in standings(rows) if standing.mean]
    better, worse = ([each.name for each in known if each.decided and sign * each.gain > 0] for sign in (1, -1))
    return (
        f"Of {len(cells)} intervals{beside} {ahead} lie above zero and {behind} below; {len(cells) * ALPHA / 2:.1f} on "
        f"each side would if nothing made a difference. Of the means of {len(known)} conditions, corrected for all of "
        f"them, {_listed(better)} above zero and {_listed(worse)} below."
    )


def _mean(rows: Sequence[Row]) -> TTest | None:
    tests = [test for test in map(gain_of, rows) if test]
    return mean_t(tests) if tests else None


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none lies"
    return f"{len(names)} {'lies' if len(names) == 1 else 'lie'} ({', '.join(names)})"
