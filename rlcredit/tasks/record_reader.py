"""Turn a record into an example by its question and answer columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlcredit.policy.chat_turns import Conversation
from rlcredit.tasks.example import Example
from rlcredit.tasks.instruction_columns import QUESTION_FIELD, fill_template, write_column_text
from rlcredit.tasks.record_answers import AnswerColumn, MissingAnswerError
from rlcredit.tasks.record_values import has_column, list_columns, read_column, read_question


@dataclass(frozen=True)
class RecordReader:
    """A reader for the records of one source.

    Args:
        question: Column of the question; None where the template names other columns only.
        answers: Column of the answer, and how it is read; None if there is none.
        template: Template that makes the question out of columns; see
            :func:`~rlcredit.tasks.instruction_columns.split_instruction`.
        columns: Columns that the template names, beside the question.
        compares_answers: Whether an answer must be a text to compare with. If not, what is none stays a column, and the
            answer is empty.
        demands_answers: Whether a record without an answer is refused.

    """

    question: str | None
    answers: AnswerColumn | None
    template: str = QUESTION_FIELD
    columns: frozenset[str] = frozenset()
    compares_answers: bool = True
    demands_answers: bool = True

    def read_example(self, record: dict[str, Any], location: str) -> Example:
        """Return the example of a record.

        Args:
            record: Record of a table.
            location: Place that the record is from, for messages.

        Raises:
            MissingAnswerError: it has no answer.
            AmbiguousListError: it lists answers, and nobody has said what that means.
            ValueError: its question or answer is nothing that can be asked or judged.

        """
        question = self._compose_question(
            record, None if self.question is None else self._read_question(record, location), location
        )
        answers = self._read_answers(record, location)
        answer, *alternatives = answers or ("",)
        role_columns = (self.question, self.answers.name if self.answers and answers else None)
        metadata = {name: content for name, content in record.items() if name not in role_columns}
        columns = {name: record[name] for name in role_columns if name in record}
        example = Example(question, answer, metadata, tuple(alternatives), columns)
        try:
            (example.text + example.reference).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{location}: not UTF-8 ({error.reason}). Save the file as UTF-8.") from None
        return example

    def _read_answers(self, record: Mapping[str, Any], location: str) -> tuple[str, ...]:
        """Return the answers of a record; none where none can be read, and none is needed."""
        if self.answers is None:
            return ()
        try:
            return self.answers.read_answers(record, location)
        except MissingAnswerError:
            if self.demands_answers:
                raise
        except ValueError:
            if self.compares_answers:
                raise
        return ()

    def _read_question(self, record: Mapping[str, Any], location: str) -> str | Conversation:
        assert self.question is not None
        if not has_column(record, self.question):
            raise ValueError(f"{location}: column `{self.question}` is missing; found {list_columns(record)}.")
        content = read_column(record, self.question)
        question = read_question(content, location)
        if question is None:
            raise ValueError(
                f"{location}: column `{self.question}` must be a non-empty text or a number, got {content!r:.200}."
            )
        return question

    def _compose_question(
        self, record: Mapping[str, Any], question: str | Conversation | None, location: str
    ) -> str | Conversation:
        """Return the question, with the template around its last message."""
        if question is not None and self.template == QUESTION_FIELD:
            return question
        last_text = question[-1]["content"] if isinstance(question, list) else question

        def text_of(name: str) -> str | None:
            if name == "question" and last_text is not None:
                return last_text
            return self._read_column_text(record, name, location) if name in self.columns else None

        text = fill_template(self.template, text_of)
        if not text:
            raise ValueError(
                f"{location}: the columns {sorted(self.columns)} of data.init_args.instruction are all empty."
            )
        return [*question[:-1], {**question[-1], "content": text}] if isinstance(question, list) else text

    def _read_column_text(self, record: Mapping[str, Any], name: str, location: str) -> str:
        """Return a column's text for the question; empty if the column is."""
        if not has_column(record, name):
            raise ValueError(f"{location}: column `{name}`, which data.init_args.instruction names, is missing.")
        try:
            return write_column_text(read_column(record, name))
        except ValueError as error:
            raise ValueError(f"{location}: column `{name}`, which data.init_args.instruction names, {error}") from None
