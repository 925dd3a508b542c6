"""Questions and answers from JSON-lines files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcredit.tasks.base import Task
from rlcredit.tasks.example import Example
from rlcredit.tasks.split import disjoint, split


class JSONL(Task):
    """One JSON object per line with the fields ``prompt`` and ``answer``; other fields become metadata.

    Args:
        train: file of training questions.
        validation: file of held-out questions; without one, a hash of the text holds out a tenth of ``train``.
        kwargs: see :class:`~rlcredit.tasks.base.Task`.

    """

    def __init__(self, train: Path, validation: Path | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.train, self.validation = Path(train), validation and Path(validation)

    def examples(self) -> tuple[list[Example], list[Example]]:
        """Read the files; questions held out are taken out of the training set."""
        if self.validation is None:
            return split(_lines(self.train), None, self.validation_size)
        return disjoint(_lines(self.train), _lines(self.validation), self.validation_size)


def _lines(path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as file:
        for place, line in enumerate(file, start=1):
            if line.strip():
                yield _example(line, f"{path}, line {place}")


def _example(line: str, where: str) -> Example:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON ({error.msg} at column {error.colno}).") from error
    if not isinstance(record, dict):
        raise ValueError(f"{where}: expected an object with `prompt` and `answer`, got {type(record).__name__}.")
    for name in ("prompt", "answer"):
        if name not in record:
            raise ValueError(f"{where}: field `{name}` is missing; found {sorted(record)}.")
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            raise ValueError(f"{where}: field `{name}` must be a non-empty string or a number, got {value!r}.")
    prompt, answer = str(record.pop("prompt")), str(record.pop("answer"))
    return Example(prompt, answer, record)
