"""Check that each reference is right when a completion states it; otherwise no completion could earn a reward."""

import time
from collections.abc import Callable, Iterator, Sequence

from rlcredit.tasks.example import Example
from rlcredit.verification.answer_formats import FORMATS, AnswerFormat, find_final_answer, state_answer
from rlcredit.verification.verifiers import Verdict

SECONDS = 5.0
"""After which no further references are judged."""

AT_ONCE = 500
"""References that are judged together."""

LONG = 400
"""Length from which an answer of several lines counts as a worked solution."""

SOLUTION = "a solution with its answer in the format "

SHOWN = 3
"""Questions that are shown."""

Judge = Callable[[Sequence[str], Sequence[Example]], list[Verdict]]


def find_reference_faults(
    examples: Sequence[Example], answer_format: AnswerFormat, judge: Judge
) -> Iterator[tuple[Example, str]]:
    """Yield questions whose reference a completion is unlikely to state, with the reason.

    Each accepted answer is stated as a completion should state it, and judged.

    Args:
        examples: Questions to check; what cannot be judged in :data:`SECONDS` is left out.
        answer_format: Format in which completions are asked to state their answers.
        judge: Function that judges completions against questions.

    """
    started = time.monotonic()
    for start in range(0, len(examples), AT_ONCE):
        if time.monotonic() - started > SECONDS:
            return
        stated = [
            (example, answer) for example in examples[start : start + AT_ONCE] for answer in example.accepted_answers
        ]
        alone = [example._replace(answer=answer, alternatives=()) for example, answer in stated]
        verdicts = judge([state_answer(answer, [answer_format])[0] for _, answer in stated], alone)
        for (example, answer), verdict in zip(stated, verdicts, strict=True):
            fault = _explain_reference_fault(answer, verdict)
            if fault:
                yield example, fault


def _explain_reference_fault(answer: str, verdict: Verdict) -> str:
    stated_in = next((each for each in FORMATS if find_final_answer(answer, (each,)) is not None), None)
    if stated_in is not None:
        return f"{SOLUTION}{stated_in}"
    if verdict is not Verdict.RIGHT:
        return verdict.value
    return "a text of several lines" if len(answer) > LONG and "\n" in answer.strip() else ""


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
    stated = state_answer("...", [answer_format])[0]
    shown = "; ".join(f"{place(example)}: {example.reference!r:.80} ({fault})" for example, fault in faults[:SHOWN])
    return (
        f"warning: {len(faults):,} of {total:,} references are not judged right even when a completion states them "
        f"as `{stated}`, first: {shown}."
    )


def suggest_reference_remedy(faults: Sequence[tuple[Example, str]]) -> str:
    """Return the repair for references from a file."""
    solution = next((fault for _, fault in faults if fault.startswith(SOLUTION)), None)
    if solution is not None:
        mark = solution.removeprefix(SOLUTION)
        return f"If solutions mark their answers like this, set data.init_args.reference: {mark}."
    return "Correct them, or leave these questions out: they may never earn a reward."
