"""Questions and answers from files, folders and repositories on the hub."""

import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

from rlcredit.base.messages import print_message, warn_once
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.policy.chat_turns import Conversation
from rlcredit.tasks.example import Example, QuestionSets, build_conversation
from rlcredit.tasks.held_out_split import (
    hold_out_smallest_hashes,
    make_disjoint_sets,
    separate_alike_questions,
    split_held_out,
)
from rlcredit.tasks.instruction_columns import QUESTION_FIELD, find_braced_names, split_instruction
from rlcredit.tasks.record_answers import (
    AmbiguousListError,
    AnswerColumn,
    ListMeaning,
    MissingAnswerError,
    accept_same_answers,
    find_comma_decimals,
)
from rlcredit.tasks.record_reader import RecordReader
from rlcredit.tasks.record_sources import RecordSource
from rlcredit.tasks.record_values import USUAL_COLUMNS, find_role_column, has_column, is_within_column, list_columns
from rlcredit.tasks.task import Task, require_positive
from rlcredit.verification.answer_formats import AnswerFormat

MAX_QUESTION_LENGTH = 2**20
"""Characters of a question; a prompt of a hundred thousand tokens has fewer."""

HEAD_RECORDS = 100
"""Number of first records searched for an answer column, which JSON lines may lack."""


class Records(Task):
    """Questions and answers from any table: JSONL, JSON, CSV, Parquet, a folder, a data set of the hub.

    Answers may be texts or numbers. What is in other columns goes to the verifier as metadata. Of a question that
    occurs more than once, the first is used.

    Args:
        path: File (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``), folder (written by ``save_to_disk``, or of
            such files), or repository on the hub.
        validation: File, folder or repository of held-out questions that lie elsewhere.
        name: Configuration inside a folder or repository; of several, questions are taken in turn.
        revision: Commit or tag of a repository; pin it for a result that is to be repeated.
        train_split: Split of ``path`` with training questions; if None all its questions are held out, and nothing can
            be trained.
        validation_split: Split with held-out questions. If None, those of ``validation``; without it, a hash of the
            text holds out a tenth of ``train_split``, at least one question.
        question: Column of the question; one called ``question``, ``prompt`` or ``problem`` if None. ``a.b`` is the
            value of ``b`` inside ``a``.
        answer: Column of the answer; one called ``answer``, ``final_answer`` or ``ground_truth`` if None.
        reference: How the column of the answer states it, if that is a worked solution; the whole column is the answer
            if None.
        answers: Meaning of a list in the column of the answer. ``any``: each entry is right; ``all``: a completion must
            state all of them. A list of several is refused if None; one of one is that entry.
        decimal_comma: Whether ``3,5`` is 3.5 in the texts of the column of the answer; otherwise it is 3 and 5.
        skip_unanswered: Whether to leave out records without an answer, and say how many there are; they are refused if
            false.
        max_question_characters: Length beyond which questions are left out, without instruction, system prompt and
            shots; the same for every policy, so that all are asked the same questions.
        kwargs: Arguments of :class:`~rlcredit.tasks.task.Task`.

    """

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
        answers: ListMeaning | None = None,
        decimal_comma: bool = False,
        skip_unanswered: bool = False,
        max_question_characters: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if train_split is None and validation_split is None and validation is None:
            raise ValueError(
                "data.init_args.train_split is null, and no data.init_args.validation_split is named: no question is "
                "left. Name the split whose questions are held out."
            )
        self.path, self.validation = path, validation
        self.name, self.revision = name, revision  # pyright: ignore[reportAttributeAccessIssue]
        self.train_split, self.validation_split = train_split, validation_split
        self.question, self.answer = question, answer
        self.reference: AnswerFormat | None = reference
        if answers is not None:
            require_choice("data", "answers", answers, get_args(ListMeaning))
        require_positive(
            "data.init_args.max_question_characters", 1 if max_question_characters is None else max_question_characters
        )
        # Under names of their own, so that older runs, which had no such arguments, are still described as they were.
        self.list_meaning: ListMeaning | None = answers
        self.has_decimal_commas = decimal_comma
        self.skips_unanswered = skip_unanswered
        self.longest = max_question_characters
        self.asked_by: str | None = None
        self.places: dict[str, str] = {}

    def make_source(self, path: str | Path, split_name: str | None) -> RecordSource:
        """Return the source of a split's questions."""
        is_own_path = path == self.path
        place = os.path.expanduser(path)
        name, revision = (self.name, self.revision) if is_own_path else (None, None)
        return RecordSource(str(place), split_name, name, revision)

    def locate_example(self, example: Example) -> str:
        """Return file and line, or split and row, of a question."""
        return self.places.get(example.text) or super().locate_example(example)

    def build_conversation(self, example: Example) -> Conversation:
        """Return the conversation with the policy; columns of the instruction are part of the question."""
        return build_conversation(
            self.find_question(example), self.asked_by or self.instruction, self.system, self.shots
        )

    def refuse_instruction(self, instruction: str) -> None:
        """Refuse an instruction that names neither the question nor any column."""
        if not find_braced_names(instruction):
            super().refuse_instruction(instruction)

    def suggest_shortening(self, characters: int, left_out: int) -> str:
        """Return the repair for questions that are too long."""
        number = "one question" if left_out == 1 else f"{left_out:,} questions"
        return (
            f"Set data.init_args.max_question_characters: {characters} to leave out {number}, or shorten "
            "data.init_args.instruction, system or shots."
        )

    @property
    def _training_source(self) -> RecordSource | None:
        return None if self.train_split is None else self.make_source(self.path, self.train_split)

    @property
    def _held_out_source(self) -> RecordSource | None:
        """Source of the held-out questions; None if they are taken from the training questions."""
        if self.validation is None and self.validation_split is None:
            return None
        return self.make_source(self.validation or self.path, self.validation_split)

    @property
    def has_training(self) -> bool:
        """Whether it has a training split."""
        return self.train_split is not None

    def examples(self) -> QuestionSets:
        """Read everything, and remove held-out questions from the training set.

        Raises:
            ValueError: names place and column, or says that nothing is held out.

        """
        if self._training_source is None:
            return [], self.held_out_examples()
        if self._held_out_source is None:
            questions = self._read_source(self._training_source)
            training, held_out = split_held_out(questions, None, None, 0.0 if self.validation_size == 0 else 0.1)
            if not held_out and self.validation_size != 0 and len(training) > 1:
                training, held_out = hold_out_smallest_hashes(training)
                number = len(held_out[: self.validation_size])
                print_message(
                    f"{self._training_source}: too few questions to hold out a tenth by the hash of their text. "
                    f"{number} of {len(questions)} {'is' if number == 1 else 'are'} held out, and more questions may "
                    "change which. Name a file of held-out questions in data.init_args.validation."
                )
        else:
            held_out = self._read_source(self._held_out_source)
            training, held_out = make_disjoint_sets(self._read_source(self._training_source), held_out, None)
        training, held_out = self._drop_alike_questions(training, held_out), held_out[: self.validation_size]
        if not training:
            raise ValueError(f"{self._training_source}: no question is left for training; all of them are held out.")
        if not held_out and self.validation_size != 0:
            raise ValueError(
                f"{self._training_source}: no question is held out; it has one alone. "
                "Name a file of held-out questions in data.init_args.validation, or a split in validation_split."
            )
        return training, held_out

    def _drop_alike_questions(self, training: list[Example], held_out: list[Example]) -> list[Example]:
        questions, repeats = separate_alike_questions(training, held_out)
        if repeats:
            print_message(
                f"{self._training_source}: {len(repeats):,} questions differ from held-out ones in spaces, case or "
                f"punctuation alone and are left out of training, first: {self.locate_example(repeats[0])}"
            )
        return questions

    def held_out_examples(self) -> list[Example]:
        """Read only the held-out questions, if they have a source of their own."""
        if self._held_out_source is None:
            return self.examples()[1]
        return split_held_out(self._read_source(self._held_out_source), None, self.validation_size, share=1.0)[1]

    def _read_source(self, source: RecordSource) -> list[Example]:
        """Return the distinct questions of a source, in its order."""
        examples, places, contradictions = dict[str, Example](), dict[str, str](), list[tuple[str, Example]]()
        for location, example in self._read_located_examples(source):
            known_example = examples.setdefault(example.text, example)
            if accept_same_answers(known_example.accepted_answers, example.accepted_answers):
                places.setdefault(example.text, location)
            else:
                contradictions.append((location, example))
        if not examples:
            raise ValueError(f"{source}: there is no question in it.")
        if contradictions:
            location, example = contradictions[0]
            if source.is_text_file:
                note = f" {len(contradictions):,} records contradict one before them." if contradictions[1:] else ""
                raise ValueError(
                    f"{location}: asks what {places[example.text]} asks, and answers {example.reference!r} instead of "
                    f"{examples[example.text].reference!r}. Remove one of the two.{note}"
                )
            print_message(
                f"warning: {source}: {len(contradictions):,} records repeat a question with another answer, {location} "
                "first. The first answer of each counts."
            )
        self.places = places | self.places
        self._warn_of_commas(source, list(examples.values()))
        return list(examples.values())

    def _read_located_examples(self, source: RecordSource) -> Iterator[tuple[str, Example]]:
        """Yield examples with their places; unusable records are counted to the end, then refused or reported.

        Raises:
            ValueError: names the first of them, their number, and the ways on.

        """
        gaps, ambiguities, long_places = list[str](), list[str](), list[str]()
        total = bare_count = 0
        records = source.read_records()
        head = list(islice(records, HEAD_RECORDS))
        if not head:
            return
        place, sample = next((row for row in head if self._has_answer(row[1])), head[0])
        reader = self._make_record_reader(sample, place)
        for location, record in chain(head, records):
            total += 1
            try:
                example = reader.read_example(record, location)
            except MissingAnswerError as error:
                gaps.append(str(error))
            except AmbiguousListError as error:
                ambiguities.append(str(error))
            else:
                bare_count += not example.answer
                if len(example.text) <= (MAX_QUESTION_LENGTH if self.longest is None else self.longest):
                    yield location, example
                elif self.longest is None:
                    raise ValueError(
                        f"{location}: the question is longer than {MAX_QUESTION_LENGTH:,} characters, longer than any "
                        "prompt."
                    )
                else:
                    long_places.append(location)
        of_all = f"of {total:,} records"
        if ambiguities:
            raise ValueError(f"{ambiguities[0]} {len(ambiguities):,} {of_all} list several.")
        if gaps and not self.skips_unanswered:
            ways = "Fill it in, or set data.init_args.skip_unanswered: true to leave them out"
            raise ValueError(f"{gaps[0]} {len(gaps):,} {of_all} have no answer. {ways}.")
        if gaps:
            print_message(f"{source}: {len(gaps):,} {of_all} have no answer and are left out. {gaps[0]}")
        if bare_count:
            judge = "data.init_args.rewards" if self.reward_sum else f"{type(self).__name__}.judge"
            judge = "data.init_args.verifier" if self.own else judge
            print_message(f"{source}: {bare_count:,} {of_all} have no answer as a text; {judge} needs none.")
        if long_places:
            print_message(
                f"{source}: {len(long_places):,} {of_all} ask more than {self.longest} characters and are left out."
            )

    def _make_record_reader(self, record: dict[str, Any], location: str) -> RecordReader:
        """Return the reader for a source, given a record that has the columns.

        Raises:
            ValueError: a column is missing, or cannot be told from others.

        """
        question = None
        if QUESTION_FIELD in self.instruction:
            question = find_role_column("question", self.question, record, location)
        answer = self._find_answer_column(record, location)

        def is_column(name: str) -> bool:
            return not _is_answer(answer, name) and has_column(record, name)

        template, asked_by = split_instruction(self.instruction, is_column)
        if self.asked_by not in (None, asked_by):
            raise ValueError(
                f"{location}: data.init_args.instruction names a column that only one of the "
                f"training and the held-out questions "
                "has. Give both the same columns."
            )
        self.asked_by = asked_by
        columns = frozenset(filter(is_column, find_braced_names(template))) - {"question"}
        if not columns and QUESTION_FIELD not in self.instruction:
            raise ValueError(
                f"{location}: data.init_args.instruction names neither {{question}} nor a column beside the answer's: "
                f"{self.instruction!r:.80}. Name one of {list_columns(record)}."
            )
        self._warn_of_braces(record, answer, columns)
        kind = (self.list_meaning, self.reference, self.has_decimal_commas)
        answers = None if answer is None else AnswerColumn(answer, *kind)
        demands_answers = self.compares_answers or self.skips_unanswered
        return RecordReader(question, answers, template, columns, self.compares_answers, demands_answers)

    def _find_answer_column(self, record: dict[str, Any], location: str) -> str | None:
        """Return the column of the answer; None where none is named, none is found, and none is needed."""
        usual = [name for name in USUAL_COLUMNS["answer"] if has_column(record, name)]
        if self.answer is None and len(usual) != 1 and not self.compares_answers:
            return None
        return find_role_column("answer", self.answer, record, location)

    def _has_answer(self, record: dict[str, Any]) -> bool:
        """Whether a record has a column that may hold the answer."""
        return any(has_column(record, name) for name in ([self.answer] if self.answer else USUAL_COLUMNS["answer"]))

    def _warn_of_braces(self, record: dict[str, Any], answer: str | None, columns: frozenset[str]) -> None:
        """Warn about names in the instruction that look like columns but cannot be used."""
        for name in find_braced_names(self.instruction):
            if name != "question" and name not in columns and name.replace("_", "a").isidentifier():
                reason = (
                    "has the answer" if _is_answer(answer, name) else f"is no column; there are {list_columns(record)}"
                )
                warn_once(
                    f"data.init_args.instruction: `{name}` {reason}. The policy reads {{{name}}} as it is written."
                )

    def _warn_of_commas(self, source: RecordSource, examples: list[Example]) -> None:
        """Warn about answers that are read as lists and may be decimals."""
        decimals = [] if self.has_decimal_commas else find_comma_decimals([example.answer for example in examples])
        if decimals:
            sample = examples[decimals[0]]
            print_message(
                f"warning: {source}: {len(decimals):,} of {len(examples):,} answers look like decimals with a comma "
                f"and are read as lists, first: {self.locate_example(sample)}: {sample.answer!r}. If 3,5 means 3.5, "
                "set data.init_args.decimal_comma: true."
            )


def _is_answer(answer: str | None, name: str) -> bool:
    """Whether a column is that of the answer, or the answer is a field inside it."""
    return answer is not None and is_within_column(answer, name)
