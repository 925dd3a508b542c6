"""The folder of an evaluation: answers are stored batch by batch, and an interrupted evaluation continues."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlcredit.base.files import lock_file, write_atomically
from rlcredit.base.messages import print_message
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.evaluation.evaluation_request import list_setting_differences
from rlcredit.record.journal import Journal, read_journal_entries
from rlcredit.run_folder.layout import RunFolder

Answer = dict[str, Any]
"""One completion: number of its ``question`` and ``sample``, ``completion``, ``answer`` found in it (None without one),
``verdict``, ``tokens``, whether it is ``truncated``, and ``logprob`` (sum) and ``entropy`` (mean per token) in nats."""


class PolicyTask(NamedTuple):
    """A policy and a task, by name."""

    policy: str
    task: str


class EvaluationFolder:
    """The folder of one evaluation: the only place that knows its file names.

    Args:
        path: Path of the folder; it need not exist.

    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def settings(self) -> Path:
        """File of the settings and the versions that the answers were made with."""
        return self.path / "settings.json"

    @property
    def batches(self) -> Path:
        """File of the answers in the order they came, one batch of questions per line."""
        return self.path / "batches.jsonl"

    @property
    def answers(self) -> Path:
        """File of the answers in order, one per line, with question and reference."""
        return self.path / "answers.jsonl"

    @property
    def results(self) -> Path:
        """File of all numbers, unrounded."""
        return self.path / "results.json"

    @property
    def table(self) -> Path:
        """File of the tables, as Markdown."""
        return self.path / "results.md"

    @property
    def shown_answers(self) -> Path:
        """File of some answers as a table for MLflow's pages."""
        return self.path / "answers.json"

    @property
    def record(self) -> RunFolder:
        """Folder of the record for MLflow."""
        return RunFolder(self.path)

    @property
    def has_record(self) -> bool:
        """Whether a complete record exists."""
        return any("table" in entry for entry, _ in read_journal_entries(self.record.record))

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Lock the folder against other evaluations; the system unlocks it when this process ends.

        Raises:
            ValueError: another process writes here, or the folder is not one of an evaluation.

        """
        there = sorted(self.path.iterdir()) if self.path.is_dir() and not self.settings.exists() else []
        if others := [path.name for path in there if path != self.record.lock]:
            raise ValueError(
                f"--out: {shorten_name(self.path)} holds other files, for instance {others[0]}. Name a new folder."
            )
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(lock_file(self.record.lock))
            except BlockingIOError:
                raise ValueError(
                    f"another process writes to {self.path}. Wait for it, or choose another --out."
                ) from None
            yield

    def begin_or_resume(self, settings: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        """Write the settings of the evaluation, or check that they equal those written before.

        Args:
            settings: Settings that answers depend on.
            versions: Versions of the code; an evaluation begun with others goes on, with a warning.

        Raises:
            ValueError: something else was asked here.

        """
        settings = json.loads(json.dumps(settings))
        if not self.settings.exists():
            write_atomically(self.settings, json.dumps({"settings": settings, "versions": versions}, indent=1))
            return
        before = json.loads(self.settings.read_text(encoding="utf-8"))
        if differing := list_setting_differences(before["settings"], settings):
            more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
            raise ValueError(
                f"--out: {shorten_name(self.path)} was begun with other settings: {'; '.join(differing[:3])}{more}. "
                "Name another folder, or leave --out out."
            )
        if others := list_setting_differences(before["versions"], versions):
            print_message(f"warning: {self.path} was begun with other versions: {'; '.join(others)}.")

    def open_journal(self) -> Journal:
        """Open the file of batches for appending."""
        return Journal(self.batches)

    def read_answers(self) -> dict[PolicyTask, list[Answer]]:
        """Return the stored answers by policy and task, in the order of the questions."""
        answers: dict[PolicyTask, list[Answer]] = {}
        for entry, _ in read_journal_entries(self.batches):
            answers.setdefault(PolicyTask(entry["policy"], entry["task"]), []).extend(entry["answers"])
        return answers
