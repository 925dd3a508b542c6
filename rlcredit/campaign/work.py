"""From what is missing to what is done: runs in slots, each tried twice at most."""

import dataclasses
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from rlcredit.campaign import runs
from rlcredit.campaign.cell import Cell, arguments
from rlcredit.campaign.declaration import Declaration
from rlcredit.campaign.launchers.launcher import Launcher, Process
from rlcredit.campaign.ledger import FAILED, FINISHED, Ledger
from rlcredit.campaign.parent import Parent
from rlcredit.campaign.plan import duration
from rlcredit.campaign.process import POLLED
from rlcredit.campaign.resolution import Resolution, of_cell
from rlcredit.campaign.results import result
from rlcredit.campaign.table import Lines
from rlcredit.files import write_atomically

TRIES = 2


@dataclasses.dataclass
class Attempt:
    """A run that goes on now."""

    cell: Cell
    process: Process
    began: float


@dataclasses.dataclass
class Work:
    """What is to be done, and who does it.

    Args:
        declaration: of the campaign.
        resolutions: of its conditions.
        evaluations: steps after which a run is evaluated.
        launcher: of its runs.
        settings: overlay on all files.
        ledger: what is done.
        parent: MLflow's.

    """

    declaration: Declaration
    resolutions: Mapping[str, Resolution]
    evaluations: Sequence[int]
    launcher: Launcher
    settings: Path
    ledger: Ledger
    parent: Parent
    tries: Counter[str] = dataclasses.field(default_factory=Counter)

    def through(self, missing: Sequence[Cell], view: Lines) -> None:
        """Run what is missing; a crash is the affair of its own run."""
        waiting, running = deque(missing), list[Attempt]()
        try:
            while waiting or running:
                while waiting and len(running) < self.launcher.slots:
                    running.append(self._begun(waiting.popleft(), view))
                for attempt in list(running):
                    if (status := attempt.process.poll()) is not None:
                        running.remove(attempt)
                        waiting.extendleft([attempt.cell] if self._again(attempt, status, view) else [])
                view.refresh()
                time.sleep(POLLED)
        finally:
            for attempt in running:
                attempt.process.kill()

    def config(self, cell: Cell) -> dict[str, object]:
        """Return the declared configuration of a run."""
        return of_cell(self.resolutions[cell.condition].leaves, cell, self.launcher.threads)

    def _begun(self, cell: Cell, view: Lines) -> Attempt:
        """Continue a run if that is possible, else begin it anew."""
        self.launcher.end(cell.run.process)
        given = arguments(cell, self.declaration, self.launcher.threads, self.settings)
        if continued := runs.continuable(cell, self.evaluations):
            given.append("--ckpt_path=last")
        else:
            self.parent.abandon(cell)
            cell.run.clear()
        write_atomically(cell.run.declared, yaml.safe_dump(self.config(cell), sort_keys=False))
        self.tries[cell.name] += 1
        attempts = self.ledger.of(cell).get("attempts", 0) + 1
        self.ledger.note(cell, state="running", attempts=attempts)
        view.say(f"{'continues' if continued else 'begins':<10} {cell.name}")
        process = self.launcher.begin(cell.folder, given, self.parent.context(cell))
        return Attempt(cell, process, time.monotonic())

    def _again(self, attempt: Attempt, status: int, view: Lines) -> bool:
        """Put down how an attempt ended; return whether there is to be another."""
        cell, took = attempt.cell, time.monotonic() - attempt.began
        seconds = self.ledger.of(cell).get("seconds", 0.0) + took
        if status == 0 and all(runs.outcome(cell, step) is not None for step in self.evaluations):
            found = result(cell, self.declaration, self.config(cell), self.resolutions[cell.condition].parameters)
            self.ledger.note(cell, state=FINISHED, seconds=seconds, **found)
            value = f"{self.declaration.primary} {found['primary']:.3f}"
            view.say(f"{'finished':<10} {cell.name}   {value}   {duration(took)}")
            for difference in found["differences"]:
                view.say(f"{'DIFFERS':<10} {cell.name}   {difference}")
            return False
        again = self.tries[cell.name] < TRIES
        self.ledger.note(cell, state="retrying" if again else FAILED, seconds=seconds, status=status)
        how = f"status {status}" if status else "an evaluation missing"
        view.say(f"{'crashed' if again else 'FAILED':<10} {cell.name}   {how}, {duration(took)}; the end of its log:")
        view.say("\n".join(f"    {line}" for line in runs.last_words(cell.folder)))
        return again
