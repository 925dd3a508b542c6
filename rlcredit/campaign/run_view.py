"""The progress of a campaign's runs: a live table on a terminal, one line per event anywhere else."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rlcredit.base.messages import format_duration
from rlcredit.base.text_escaping import escape_controls, unwrap_stream

_TABLE_COLUMNS = ("run", "state", "step", "solve rate", "held out", "eta")
_REFRESH_SECONDS = 1.0
"""Seconds between two looks at the runs."""

Row = tuple[str, ...]


def describe_run_row(
    name: str, entry: dict[str, Any], status: dict[str, Any], steps: int | None, evaluations: Sequence[int]
) -> Row:
    """Return the row of a run in the live table.

    Args:
        name: Name of the run.
        entry: Entry of the run in the campaign's ledger.
        status: Status that the run last wrote, empty if it wrote none.
        steps: Optimizer steps that the run has to take; None if a budget of tokens ends it.
        evaluations: Steps after which it is evaluated.

    Example:
        >>> describe_run_row("grpo/seed0", {"state": "running"}, {"step": 5, "step_seconds": 2.0}, 10, [0, 10])
        ('grpo/seed0', 'running', '5/10', '', '', '10 s')

    """
    state, step = entry.get("state", "waiting"), status.get("step", 0)
    eta = ""
    if steps and state == "running" and (seconds := status.get("step_seconds")):
        evaluation_count = sum(due > step for due in evaluations)
        eta = format_duration((steps - step) * seconds + evaluation_count * (status.get("validation_seconds") or 0.0))
    progress = f"{step}/{steps}" if steps else f"{step}"
    shares = (status.get(key) for key in ("solve_rate", "held_out"))
    return (name, state, progress, *("" if share is None else f"{share:.3f}" for share in shares), eta)


class RunEventLines(AbstractContextManager["RunEventLines"]):
    """Progress display that prints one line per event."""

    def print_event(self, sentence: str) -> None:
        """Print an event."""
        print(sentence, flush=True)

    def redraw(self) -> None:
        """Do nothing, since lines are not redrawn."""

    def __exit__(self, *_: object) -> None:
        """Do nothing, since only a table has to be closed."""


class LiveRunTable(RunEventLines):
    """Progress display that redraws a table in place, with events above it.

    Args:
        rows: Function that returns the rows of all runs.
        screen: Terminal on which the table is drawn until all runs have ended, while events go to standard output; if
            None both stand on standard output, where the table stays.

    """

    def __init__(self, rows: Callable[[], Iterable[Row]], screen: TextIO | None = None) -> None:
        self.rows = rows
        self.draws_apart = screen is not None
        console = Console(file=unwrap_stream(screen or sys.stdout))
        self.live = Live(
            self._build_table(),
            console=console,
            auto_refresh=False,
            redirect_stdout=not self.draws_apart,
            transient=self.draws_apart,
        )
        self.drawn_at = 0.0

    def __enter__(self) -> "LiveRunTable":
        """Start drawing."""
        self.live.start()
        return self

    def print_event(self, sentence: str) -> None:
        """Print an event above the table, or where the table is not."""
        if self.draws_apart:
            super().print_event(sentence)
            return
        self.live.console.print(escape_controls(sentence), highlight=False, markup=False)

    def redraw(self) -> None:
        """Redraw the table, at most once a second."""
        if time.monotonic() - self.drawn_at >= _REFRESH_SECONDS:
            self.drawn_at = time.monotonic()
            self.live.update(self._build_table(), refresh=True)

    def __exit__(self, *_: object) -> None:
        """Draw the table a last time."""
        self.live.update(self._build_table(), refresh=True)
        self.live.stop()

    def _build_table(self) -> Table:
        table = Table(*_TABLE_COLUMNS)
        for cells in self.rows():
            table.add_row(*cells)
        return table


def open_run_view(rows: Callable[[], Iterable[Row]], screen: TextIO | None = None) -> RunEventLines:
    """Return a live table on a terminal, lines anywhere else.

    Args:
        rows: Function that returns the rows of all runs.
        screen: Terminal, or what is in its place, if standard output goes elsewhere.

    """
    return LiveRunTable(rows, screen) if (screen or sys.stdout).isatty() else RunEventLines()
