"""The progress of a card's measurement: a bar on a terminal, a line before and a line after it anywhere."""

import sys
import time
from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rlcredit.base.messages import format_duration, print_message
from rlcredit.base.text_escaping import unwrap_stream


class MeasuringBar(AbstractContextManager["MeasuringBar"]):
    """A bar over the parts of a measurement, with the part that is under way; it leaves the terminal at the end.

    Args:
        subject: Condition and test policy that are measured.
        parts: Number of parts.

    """

    def __init__(self, subject: str, parts: int) -> None:
        self.subject = subject
        self.parts = parts
        self.condition = ""
        self.began = time.perf_counter()
        self.progress: Progress | None = None

    def __enter__(self) -> "MeasuringBar":
        """Name the subject, and draw the bar if there is a terminal."""
        print_message(f"measuring  {self.subject}")
        if sys.stderr.isatty():
            columns = (TextColumn("part     "), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
            console = Console(file=unwrap_stream(sys.stderr))
            self.progress = Progress(*columns, TextColumn("{task.description}"), console=console, transient=True)
            self.progress.add_task("", total=self.parts)
            self.progress.start()
        return self

    def begin_condition(self, name: str) -> None:
        """Name the condition whose parts follow."""
        self.condition = name

    def begin_part(self, part: str) -> None:
        """Name the part that is under way; the one before it has ended."""
        if self.progress is not None:
            (task,) = self.progress.tasks
            text = f"{self.condition}: {part}"
            self.progress.update(task.id, advance=1 if task.description else 0, description=text)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Take the bar away, and say how long the measurement took unless it failed."""
        if self.progress is not None:
            self.progress.stop()
        if kind is None:
            print_message(f"measured   {self.subject} ({format_duration(time.perf_counter() - self.began)})")
