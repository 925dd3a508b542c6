"""The folder of an evaluation: answers are stored batch by batch, and an interrupted evaluation continues."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.config.stored_records import read_stored_record
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.evaluation.evaluation_request import list_setting_differences
from rlcredit.record.journal import Journal, read_journal_entries
from rlcredit.run_folder.layout import RunFolder

Answer = dict[str, Any]
"""One completion: number of its ``question`` and ``sample``, ``completion``, ``answer`` found in it (None without one),
``verdict``, ``tokens``, whether it is ``truncated``, and ``logprob`` (sum) and ``entropy`` (mean per token) in nats. Of
an episode also its ``messages``, each turn of the policy with its reward, their number ``turns`` and its ``reward``."""


class PolicyTask(NamedTuple):
    """A policy and a task, by name."""

    policy: str
    task: str


class EvaluationFolder:
    """The folder of one evaluation: the only place that knows its file names.

    Args:
        path: Path of the folder; it need not exist.

    Attributes:
        settings: File of the settings and the versions that the answers were made with.
        batches: File of the answers in the order they came, one batch of questions per line.
        answers: File of the answers in order, one per line, with question and reference.
        results: File of all numbers, unrounded.
        table: File of the tables, as Markdown.
        answer_table: File of some answers as a table for MLflow's pages.
        record: Folder of the record for MLflow.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = path / "settings.json"
        self.batches = path / "batches.jsonl"
        self.answers = path / "answers.jsonl"
        self.results = path / "results.json"
        self.table = path / "results.md"
        self.answer_table = path / "answers.json"
        self.record = RunFolder(path)

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
        paths = sorted(self.path.iterdir()) if self.path.is_dir() and not self.settings.exists() else []
        if names := [path.name for path in paths if path != self.record.lock]:
            raise ValueError(
                f"--out: {shorten_name(self.path)} holds other files, for instance {names[0]}. Name a new folder."
            )
        with self.record.lock_folder("--out"):
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
        content = read_stored_record(self.settings, dict[str, dict[str, Any]], "Name another folder with --out.")
        if differences := list_setting_differences(content["settings"], settings):
            count = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
            raise ValueError(
                f"--out: {shorten_name(self.path)} was begun with other settings: {'; '.join(differences[:3])}{count}. "
                "Name another folder, or leave --out out."
            )
        if version_differences := list_setting_differences(content["versions"], versions):
            print_message(f"warning: {self.path} was begun with other versions: {'; '.join(version_differences)}.")

    def open_journal(self) -> Journal:
        """Open the file of batches for appending."""
        return Journal(self.batches)

    def read_answers(self) -> dict[PolicyTask, list[Answer]]:
        """Return the stored answers by policy and task, in the order of the questions."""
        answers: dict[PolicyTask, list[Answer]] = {}
        for entry, _ in read_journal_entries(self.batches):
            answers.setdefault(PolicyTask(entry["policy"], entry["task"]), []).extend(entry["answers"])
        return answers
