"""What a completion answers."""

import re
from collections.abc import Callable, Sequence
from typing import Literal

AnswerFormat = Literal["boxed", "tag", "phrase", "hashes", "label", "number", "whole"]
"""How a completion may state its answer; see :func:`final_answer`."""

FORMATS: tuple[AnswerFormat, ...] = ("boxed", "tag", "phrase", "hashes", "label")
"""Those in which a completion says that this is its answer; the others take what is there."""

_LABEL = re.compile(
    r"^[ \t>#*_-]*+(?:the )?(?:final |correct )?answer[*_]*+"
    r"(?:[ \t]*+[:=][*_]*+[ \t]*+(\S.*)|[ \t:*_]*+\n++(.*))",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_NUMBER = re.compile(r"(?:(?<![\w)\]}.])[-\u2212])?(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?%?")
_MARKED = re.compile(r"\*\*([^*]+)\*\*|`([^`]+)`|\\\(((?:(?!\\\)).)+)\\\)|\\\[((?:(?!\\\]).)+)\\\]")
_PHRASE = re.compile(
    r"the (?:final |correct )?answer(?: (?:to|for) (?:the|this|your)(?: \w{1,20}){1,4})? is|final answer:",
    re.IGNORECASE,
)


def final_answer(text: str, formats: Sequence[AnswerFormat] = FORMATS) -> str | None:
    r"""Return the last answer stated in the first of some formats that occurs.

    ``boxed`` is the content of ``\boxed{}``; ``tag`` that of ``<answer></answer>``; ``phrase`` is what follows "the
    answer is", "the final answer to this problem is" or "final answer:" in its sentence; ``hashes`` what follows
    ``####`` in its line; ``label`` what follows "Answer:" at the beginning of a line, in this line or, where it ends
    there, in the next. ``number`` is the last number, whatever it is, and ``whole`` the completion itself. Marks of
    emphasis, code and inline mathematics around an answer are taken off.

    Args:
        text: a completion.
        formats: those that count, the most binding first.

    Example:
        >>> final_answer(r"so \boxed{1}, no: \boxed{\frac{1}{2}}"), final_answer("The final answer is 3.5. Done.")
        ('\\frac{1}{2}', '3.5')
        >>> final_answer("#### 42"), final_answer("#### 42", formats=("boxed",)), final_answer("I do not know")
        ('42', None, None)

    """
    answer = next((answer for name in formats if (answer := _STATED[name](text)) is not None), None)
    return answer if answer is None else _unmarked(answer)


def _unmarked(answer: str) -> str:
    marked = _MARKED.fullmatch(answer)
    return answer if marked is None else marked[marked.lastindex or 0].strip()


def _last_box(text: str) -> str | None:
    boxes = [box for box in map(_boxed, text.split(r"\boxed")[1:]) if box is not None]
    return boxes[-1] if boxes else None


def _after_phrase(text: str) -> str | None:
    places = [match.end() for match in _PHRASE.finditer(text)]
    if not places:
        return None
    return _sentence(text[places[-1] :].partition("\n")[0].lstrip(": "))


def _sentence(line: str) -> str | None:
    return re.split(r"\.(?=\s|$)", line, maxsplit=1)[0].strip(" *").strip() or None


def _after_label(text: str) -> str | None:
    answers = [answer for match in _LABEL.finditer(text) if (answer := _sentence(match[1] or match[2]))]
    return answers[-1] if answers else None


def _last_number(text: str) -> str | None:
    numbers = _ANY_NUMBER.findall(text)
    return numbers[-1] if numbers else None


def _whole(text: str) -> str | None:
    return text.strip().removesuffix(".").strip() or None


def _after_hashes(text: str) -> str | None:
    _, mark, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() or None if mark else None


def _in_tag(text: str) -> str | None:
    before, mark, _ = text.rpartition("</answer>")
    _, opened, answer = before.rpartition("<answer>")
    return answer.strip() or None if mark and opened else None


_STATED: dict[AnswerFormat, Callable[[str], str | None]] = {
    "boxed": _last_box,
    "tag": _in_tag,
    "phrase": _after_phrase,
    "hashes": _after_hashes,
    "label": _after_label,
    "number": _last_number,
    "whole": _whole,
}


def _boxed(after: str) -> str | None:
    r"""Return what a ``\boxed`` holds, given the text after it; None if it never closes."""
    if not after.startswith("{"):
        word = after.split(maxsplit=1)[:1]
        return word[0].strip("$.,") if word and after.startswith(" ") else None
    depth = 0
    for brace in re.finditer("[{}]", after):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return after[1 : brace.start()].strip()
    return None
