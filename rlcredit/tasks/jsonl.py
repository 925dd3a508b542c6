"""Questions and answers from JSON-lines files."""

from pathlib import Path
from typing import Any

from rlcredit.tasks.records import Records
from rlcredit.tasks.sources import RecordSource


class JSONL(Records):
    """One JSON object per line, whatever the file is called; otherwise as ``Records``.

    Args:
        train: file of training questions.
        validation: file of held-out questions; without one, a hash of the text holds out a tenth of ``train``.
        kwargs: see :class:`~rlcredit.tasks.records.Records` and :class:`~rlcredit.tasks.base.Task`.

    """

    first = {"question": "prompt", "answer": "answer"}  # noqa: RUF012

    def __init__(self, train: Path, validation: Path | None = None, **kwargs: Any) -> None:
        super().__init__(str(train), None if validation is None else str(validation), **kwargs)
        self.train, self.validation = Path(train), validation and Path(validation)

    def make_source(self, path: str | Path, split_name: str | None) -> RecordSource:
        """Return where the questions of a split are."""
        return super().make_source(path, split_name)._replace(form=".jsonl")
