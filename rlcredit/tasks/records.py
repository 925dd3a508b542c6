"""Questions and answers of one's own, or of anybody's: files, folders, repositories on the hub."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from rlcredit.notices import tell
from rlcredit.tasks.base import Task
from rlcredit.tasks.example import Example
from rlcredit.tasks.sources import Source
from rlcredit.tasks.split import disjoint, least, split
from rlcredit.tasks.values import answer_text, asked, column, has, names, value
from rlcredit.verification.answers import AnswerFormat, final_answer

MARKS = {"boxed": "`\\boxed{}`", "tag": "`<answer>`", "phrase": "`the answer is`", "hashes": "`####`"}


class Records(Task):
    """Questions and answers from any table: JSONL, JSON, CSV, Parquet, a folder, a data set of the hub.

    Answers may be texts or numbers. What is in other columns goes to the verifier as metadata. Of a question that
    occurs more than once, the first is used.

    Args:
        path: a file (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``), a folder (written by ``save_to_disk``,
            or of such files), or a repository on the hub.
        validation: the same, of held-out questions that lie elsewhere.
        name: configuration inside a folder or repository; of several, questions are taken in turn.
        revision: commit or tag of a repository; pin it for a result that is to be repeated.
        train_split: split of ``path`` with training questions; if None all its questions are held out, and nothing can
            be trained.
        validation_split: split with held-out questions. If None, those of ``validation``; without it, a hash of the
            text holds out a tenth of ``train_split``, at least one question.
        question: column of the question; one called ``question``, ``prompt`` or ``problem`` if None. ``a.b`` is the
            value of ``b`` inside ``a``.
        answer: column of the answer; one called ``answer``, ``final_answer`` or ``ground_truth`` if None.
        reference: how the column of the answer states it, if that is a worked solution; the whole column if None.
        kwargs: see :class:`~rlcredit.tasks.base.Task`.

    """

    first: ClassVar[Mapping[str, str]] = {}
    """Columns, by role, that come before all others that might be meant."""

    def __init__(
        self,
        path: str,
        validation: str | None = None,
        name: str | list[str] | None = None,
        revision: str | None = None,
        train_split: str | None = "train",
        validation_split: str | None = None,
        question: str | None = None,
        answer: str | None = None,
        reference: AnswerFormat | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if train_split is None and validation_split is None and validation is None:
            raise ValueError(
                "data.init_args.train_split is null, and no data.init_args.validation_split is named: no question is "
                "left. Name the split whose questions are held out."
            )
        self.path = path
        self.validation: str | Path | None = validation
        self.name, self.revision = name, revision  # pyright: ignore[reportAttributeAccessIssue]
        self.train_split, self.validation_split = train_split, validation_split
        self.question, self.answer = question, answer
        self.reference: AnswerFormat | None = reference

    def source(self, path: str | Path, split_name: str | None) -> Source:
        """Return where the questions of a split are."""
        here = path == self.path
        return Source(str(path), split_name, self.name if here else None, self.revision if here else None)

    @property
    def _training(self) -> Source | None:
        return None if self.train_split is None else self.source(self.path, self.train_split)

    @property
    def _held_out(self) -> Source | None:
        """Where held-out questions are; None if they are dealt out of the training questions."""
        if self.validation is None and self.validation_split is None:
            return None
        return self.source(self.validation or self.path, self.validation_split)

    @property
    def trains(self) -> bool:
        """Whether it has a training split."""
        return self.train_split is not None

    def examples(self) -> tuple[list[Example], list[Example]]:
        """Read everything; questions held out are taken out of the training set.

        Raises:
            ValueError: names place and column, or says that nothing is held out.

        """
        if self._training is None:
            return [], self.held_out_examples()
        if self._held_out is None:
            every = self._read(self._training)
            training, held_out = split(every, None, self.validation_size, 0.0 if self.validation_size == 0 else 0.1)
            if not held_out and self.validation_size != 0 and len(training) > 1:
                training, held_out = least(training)
                held_out = held_out[: self.validation_size]
                tell(
                    f"{self._training}: none of its questions is in the tenth that a hash of the text holds out; held "
                    f"out {'is' if len(held_out) == 1 else 'are'} {len(held_out)} of {len(every)}, which more "
                    "questions may change. Name a file of held-out questions in data.init_args.validation."
                )
        else:
            held_out = self._read(self._held_out)
            training, held_out = disjoint(self._read(self._training), held_out, self.validation_size)
        if not training:
            raise ValueError(f"{self._training}: no question is left for training; all of them are held out.")
        if not held_out and self.validation_size != 0:
            raise ValueError(
                f"{self._training}: no question is held out; it has one alone. Name a file of held-out questions in "
                "data.init_args.validation, or a split in validation_split."
            )
        return training, held_out

    def held_out_examples(self) -> list[Example]:
        """Read the held-out questions only, if they have a place of their own."""
        if self._held_out is None:
            return self.examples()[1]
        return split(self._read(self._held_out), None, self.validation_size, share=1.0)[1]

    def _read(self, source: Source) -> list[Example]:
        """Return the distinct questions of a source, in its order."""
        examples, places, repeated = dict[str, Example](), dict[str, str](), list[str]()
        for where, example in self._located(source):
            first = examples.setdefault(example.text, example)
            if first.answer == example.answer:
                places.setdefault(example.text, where)
                continue
            repeated.append(where)
            if source.editable:
                raise ValueError(
                    f"{where}: asks what {places[example.text]} asks, and answers {example.answer!r} instead of "
                    f"{first.answer!r}. Remove one of the two."
                )
        if not examples:
            raise ValueError(f"{source}: there is no question in it.")
        if repeated:
            tell(
                f"warning: {source}: {len(repeated):,} records repeat a question with another answer, {repeated[0]} "
                "first. The first answer of each counts."
            )
        return list(examples.values())

    def _located(self, source: Source) -> Iterator[tuple[str, Example]]:
        columns: dict[str, str] = {}
        for where, record in source.records():
            columns = columns or {
                role: column(role, wanted or self._first(role, record), record, where)
                for role, wanted in (("question", self.question), ("answer", self.answer))
            }
            yield where, self._example(record, columns, where)

    def _first(self, role: str, record: dict[str, Any]) -> str | None:
        """Return the column that is taken where another might be meant too."""
        return self.first.get(role) if has(record, self.first.get(role, "")) else None

    def _example(self, record: dict[str, Any], columns: dict[str, str], where: str) -> Example:
        question = self._filled(record, columns["question"], where, lambda content: asked(content, where))
        answer = self._filled(record, columns["answer"], where, answer_text)
        metadata = {name: content for name, content in record.items() if name not in columns.values()}
        return Example(question, self.stated(answer, columns["answer"], where), metadata)

    @staticmethod
    def _filled(record: dict[str, Any], name: str, where: str, read: Callable[[Any], Any]) -> Any:
        """Return what a column holds, and refuse one that holds nothing."""
        if not has(record, name):
            raise ValueError(f"{where}: column `{name}` is missing; found {names(record)}.")
        content = read(raw := value(record, name))
        if content is None:
            raise ValueError(f"{where}: column `{name}` must be a non-empty text or a number, got {raw!r}.")
        return content

    def stated(self, answer: str, name: str, where: str) -> str:
        """Return what the verifier compares with.

        Args:
            answer: content of the column.
            name: of the column.
            where: it is from, for messages.

        Raises:
            ValueError: it states no answer.

        """
        if self.reference is None:
            return answer
        stated = final_answer(answer, (self.reference,))
        if stated is None:
            raise ValueError(f"{where}: column `{name}` has no {MARKS[self.reference]} that states its answer.")
        return stated
