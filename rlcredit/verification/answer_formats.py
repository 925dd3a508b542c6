"""Formats in which a completion states its answer, and the removal of thinking."""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from rlcredit.policy.prompt_format import THINKING

AnswerFormat = Literal["boxed", "tag", "phrase", "hashes", "label", "number", "whole"]
"""Formats of stated answers; see :func:`find_final_answer`."""

FORMATS: tuple[AnswerFormat, ...] = ("boxed", "tag", "phrase", "hashes", "label")
"""Formats that mark an answer explicitly; the others take whatever is there."""

_ANSWER = r"(?:the )?(?:final |correct |right )?answer"
_LABEL = re.compile(
    rf"^[ \t>#*_-]*+{_ANSWER}[*_]*+(?:[ \t]*+[:=][*_]*+[ \t]*+(?P<here>\S.*)|[ \t:*_]*+\n\s*+(?P<below>\S.*))",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_NUMBER = re.compile(r"(?:(?<![\w)\]}.])[-\u2212])?(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?%?")
_MARKED = re.compile(
    r"\*\*([^*]+)\*\*|\*([^*]+)\*|_([^_]+)_|`([^`]+)`|\\\(((?:(?!\\\)).)+)\\\)|\\\[((?:(?!\\\]).)+)\\\]", re.DOTALL
)
_PHRASE = re.compile(
    r"the (?:final |correct |right )?answer(?: (?:to|for) (?:the|this|your)(?: \w{1,20}){1,4})? is|final answer:",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<!\bvs)(?<!\bcf)(?<!\bviz)(?<!\bresp)(?<!\bi\.e)(?<!\be\.g)(?<!\bRs)(?<!\bSt)\.(?=\s|$)")
_DISPLAYS = {"$$": "$$", r"\[": r"\]", "$": "$", r"\(": r"\)"}
"""Beginnings of mathematics that may go on over several lines, and their ends."""


def find_final_answer(text: str, formats: Sequence[AnswerFormat] = FORMATS) -> str | None:
    r"""Return the last answer stated in the first of some formats that occurs.

    ``boxed`` is the content of ``\boxed{}``; ``tag`` that of ``<answer></answer>``; ``phrase`` is what follows "the
    answer is", "the final answer to this problem is" or "final answer:" in its sentence; ``hashes`` what follows
    ``####`` in its line; ``label`` what follows "Answer:" at the beginning of a line. A phrase or a label that ends its
    line introduces the next one. ``number`` is the last number, whatever it is, and ``whole`` the completion itself.
    Marks of emphasis, code and inline mathematics around an answer are taken off.

    What stands between the marks of :data:`~rlcredit.policy.prompt_format.THINKING` is no statement. A completion
    that ends while it thinks, or in a box that it does not close, states no answer, whatever it stated before.

    Args:
        text: Text of a completion.
        formats: Formats that count, the most binding first.

    Example:
        >>> find_final_answer(r"so \boxed{1}, no: \boxed{\frac{1}{2}}")
        '\\frac{1}{2}'
        >>> find_final_answer("The final answer is 3.5. Done."), find_final_answer("I do not know")
        ('3.5', None)
        >>> find_final_answer("#### 42"), find_final_answer("#### 42", formats=("boxed",))
        ('42', None)
        >>> find_final_answer(r"<think>\boxed{7}?</think> The answer is 5."), find_final_answer(r"<think>So \boxed{5}")
        ('5', None)

    """
    spoken = drop_thinking(text)
    if "boxed" in formats and _has_open_box(spoken):
        return None
    for name in formats:
        answer = _STATED[name](spoken)
        if answer is not None:
            return _strip_marks(answer)
    return None


def drop_thinking(text: str) -> str:
    """Return the text after the thinking; empty if the completion has not finished thinking.

    Example:
        >>> drop_thinking("<think>7?</think>5"), drop_thinking("7?</think>5"), drop_thinking("5 <think>7")
        ('5', '5', '')

    """
    for opening, closing in THINKING.items():
        thought, closed, said = text.rpartition(closing)
        text = said if closed else thought + said
        if opening in text:
            return ""
    return text


def _strip_marks(answer: str) -> str:
    marked = _MARKED.fullmatch(answer)
    return answer if marked is None else marked[marked.lastindex or 0].strip()


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def _find_boxes(text: str) -> list[str | None]:
    r"""Return the content of each outermost box; None for one that never closes."""
    boxes = list[str | None]()
    end = 0
    for box in _BOX.finditer(text):
        if box.start() < end:
            continue
        content, end = _read_box_content(text, box.end())
        boxes.append(content)
    return boxes


def _read_box_content(text: str, start: int) -> tuple[str | None, int]:
    """Return the content of a box whose command ends at ``start``, and where it ends; None if it never closes."""
    after = text[start:].lstrip()
    opening = len(text) - len(after)
    if not after.startswith("{"):
        word = after.split(maxsplit=1)[:1]
        return (word[0].strip("$.,") if word else None), opening + len("".join(word))
    depth = 0
    for brace in _BRACE.finditer(text, opening):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[opening + 1 : brace.start()].strip(), brace.end()
    return None, len(text)


def _has_open_box(text: str) -> bool:
    boxes = _find_boxes(text)
    return bool(boxes) and boxes[-1] is None


def _find_last_box(text: str) -> str | None:
    boxes = _find_boxes(text)
    return boxes[-1] if boxes else None


def _find_after_phrase(text: str) -> str | None:
    places = [match.end() for match in _PHRASE.finditer(text)]
    return _take_first_sentence(text[places[-1] :].lstrip(": *\t\r\n")) if places else None


def _take_first_sentence(text: str) -> str | None:
    """Return the first sentence of the first line, or the mathematics that the text begins with."""
    for opening, closing in _DISPLAYS.items():
        content, closed, _ = text.removeprefix(opening).partition(closing)
        if text.startswith(opening) and closed and "\n" in content:
            return (opening + content + closed).strip() or None
    line = text.partition("\n")[0]
    return _SENTENCE_END.split(line, maxsplit=1)[0].strip("* \t\r\f\v") or None


def _find_after_label(text: str) -> str | None:
    starts = [match.start("here" if match["here"] else "below") for match in _LABEL.finditer(text)]
    answers = [answer for start in starts if (answer := _take_first_sentence(text[start:]))]
    return answers[-1] if answers else None


def _find_last_number(text: str) -> str | None:
    numbers = _ANY_NUMBER.findall(text)
    return numbers[-1] if numbers else None


def _take_whole_text(text: str) -> str | None:
    return text.strip().removesuffix(".").strip() or None


def _find_after_hashes(text: str) -> str | None:
    _, mark, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() or None if mark else None


def _find_in_tag(text: str) -> str | None:
    before, mark, _ = text.rpartition("</answer>")
    _, opened, answer = before.rpartition("<answer>")
    return answer.strip() or None if mark and opened else None


_STATED: dict[AnswerFormat, Callable[[str], str | None]] = {
    "boxed": _find_last_box,
    "tag": _find_in_tag,
    "phrase": _find_after_phrase,
    "hashes": _find_after_hashes,
    "label": _find_after_label,
    "number": _find_last_number,
    "whole": _take_whole_text,
}


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
    r"""Return completions that state only an answer, one in each format.

    Example:
        >>> state_answer("42", formats=("boxed", "hashes"))
        ['\\boxed{42}', '#### 42']

    """
    return [STATEMENTS[name].replace("ANSWER", answer) for name in formats]
