"""How an answer is stated, in every format that a verifier knows."""

from collections.abc import Sequence

from rlcredit.verification.answers import FORMATS, AnswerFormat

STATEMENTS: dict[str, str] = {
    "boxed": r"\boxed{ANSWER}",
    "tag": "<answer>ANSWER</answer>",
    "phrase": "The answer is ANSWER.",
    "hashes": "#### ANSWER",
    "label": "Answer: ANSWER",
    "number": "ANSWER",
    "whole": "ANSWER",
}


def state_answer(answer: str, formats: Sequence[AnswerFormat] = FORMATS) -> list[str]:
    r"""Return completions that state an answer and nothing else, one in each format.

    Example:
        >>> state_answer("42", formats=("boxed", "hashes"))
        ['\\boxed{42}', '#### 42']

    """
    return [STATEMENTS[name].replace("ANSWER", answer) for name in formats]
