"""Check that each reference is right when a completion states it; otherwise no completion could earn a reward."""

import random
import time
from collections.abc import Callable, Iterator, Sequence

from rlcredit.tasks.example import Example
from rlcredit.verification.answer_formats import MARKED_FORMATS, AnswerFormat, find_final_answer, state_answer
from rlcredit.verification.mathematics.numbers import read_rational
from rlcredit.verification.verifiers import Verdict

CHECK_SECONDS = 5.0
"""After which no further references are judged."""

CHECK_BATCH = 500
"""References that are judged together."""

OTHER_ANSWER_BATCH, OTHER_ANSWER_SECONDS = 16, 2.0
"""References against which another answer is judged together, and seconds after which no more are."""

OTHER_ANSWER = "0"
"""An answer that is wrong almost always, and gets no verdict where the reference cannot be read."""

SOLUTION_CHARACTERS = 400
"""Length from which an answer of several lines counts as a worked solution."""

SOLUTION_FAULT = "a solution with its answer in the format "

SHOWN_QUESTIONS = 3
"""Questions that are shown."""

Judge = Callable[[Sequence[str], Sequence[Example]], list[Verdict]]


def find_reference_faults(
    examples: Sequence[Example], answer_format: AnswerFormat, judge: Judge
) -> Iterator[tuple[Example, str]]:
    """Yield questions whose reference a completion is unlikely to state, with the reason.

    Each accepted answer is stated as a completion should state it, and judged.

    Args:
        examples: Questions to check; what cannot be judged in :data:`CHECK_SECONDS` is left out.
        answer_format: Format in which completions are asked to state their answers.
        judge: Function that judges completions against questions.

    """
    start_time = time.monotonic()
    for start in range(0, len(examples), CHECK_BATCH):
        if time.monotonic() - start_time > CHECK_SECONDS:
            return
        pairs = [
            (example, answer)
            for example in examples[start : start + CHECK_BATCH]
            for answer in example.accepted_answers
        ]
        single_examples = [example._replace(answer=answer, alternatives=()) for example, answer in pairs]
        verdicts = judge([state_answer(answer, [answer_format])[0] for _, answer in pairs], single_examples)
        for (example, answer), verdict in zip(pairs, verdicts, strict=True):
            fault = _explain_reference_fault(answer, verdict)
            if fault:
                yield example, fault


def _explain_reference_fault(answer: str, verdict: Verdict) -> str:
    answer_format = next((name for name in MARKED_FORMATS if find_final_answer(answer, (name,)) is not None), None)
    if answer_format is not None:
        return f"{SOLUTION_FAULT}{answer_format}"
    if verdict is not Verdict.RIGHT:
        return verdict.value
    return "a text of several lines" if len(answer) > SOLUTION_CHARACTERS and "\n" in answer.strip() else ""


def find_unreadable_references(
    examples: Sequence[Example], answer_format: AnswerFormat, judge: Judge
) -> tuple[list[Example], int]:
    """Return questions whose reference the verifier cannot read, and the number of questions that were tried.

    Only the very text of such a reference gets a verdict: :data:`OTHER_ANSWER` gets none. Numbers can be read.

    Args:
        examples: Questions to check, in a shuffled order until :data:`OTHER_ANSWER_SECONDS` is over, for their kinds
            are neighbours.
        answer_format: Format in which completions are asked to state their answers.
        judge: Function that judges completions against questions.

    """
    start_time, verdicts = time.monotonic(), dict[tuple[str, ...], Verdict]()
    examples_by_answers = {
        example.accepted_answers: example
        for example in examples
        if None in map(read_rational, example.accepted_answers)
    }
    remainder = random.Random(0).sample(list(examples_by_answers.values()), len(examples_by_answers))
    while remainder and time.monotonic() - start_time < OTHER_ANSWER_SECONDS:
        part, remainder = remainder[:OTHER_ANSWER_BATCH], remainder[OTHER_ANSWER_BATCH:]
        batch_verdicts = judge([state_answer(OTHER_ANSWER, [answer_format])[0]] * len(part), part)
        verdicts |= zip((example.accepted_answers for example in part), batch_verdicts, strict=True)
    skipped_answers = {example.accepted_answers for example in remainder}
    unreadable = [example for example in examples if verdicts.get(example.accepted_answers) is Verdict.UNJUDGED]
    return unreadable, sum(example.accepted_answers not in skipped_answers for example in examples)


def write_unreadable_warning(unreadable: Sequence[Example], total: int, place: Callable[[Example], str]) -> str:
    """Return the warning about references that the verifier cannot read; arguments as for those that find them."""
    listing = "; ".join(f"{place(example)}: {example.reference!r:.80}" for example in unreadable[:SHOWN_QUESTIONS])
    return (
        f"warning: {len(unreadable):,} of {total:,} references that were tried cannot be read by the verifier, first: "
        f"{listing}. Answers to these questions are not judged unless they are the same text. Write the references "
        "otherwise, or leave these questions out."
    )


def write_reference_warning(
    faults: Sequence[tuple[Example, str]], total: int, answer_format: AnswerFormat, place: Callable[[Example], str]
) -> str:
    """Return the warning about references that fail the check, without the repair.

    Args:
        faults: Faults that :func:`find_reference_faults` found, at least one.
        total: Number of questions that were checked.
        answer_format: Format in which the references were stated.
        place: Place where a question is from.

    """
    statement = state_answer("...", [answer_format])[0]
    listing = "; ".join(
        f"{place(example)}: {example.reference!r:.80} ({fault})" for example, fault in faults[:SHOWN_QUESTIONS]
    )
    return (
        f"warning: {len(faults):,} of {total:,} references are not judged right even when a completion states them "
        f"as `{statement}`, first: {listing}."
    )


def suggest_reference_remedy(faults: Sequence[tuple[Example, str]]) -> str:
    """Return the repair for references from a file."""
    solution = next((fault for _, fault in faults if fault.startswith(SOLUTION_FAULT)), None)
    if solution is not None:
        mark = solution.removeprefix(SOLUTION_FAULT)
        return f"If solutions mark their answers like this, set data.init_args.reference: {mark}."
    return "Correct them, or leave these questions out: they may never earn a reward."
