"""Formats in which a completion states its answer, and the removal of thinking."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from rlcredit.policy.prompt_format import THINKING_TAGS
from rlcredit.verification.mathematics.notation import find_closing_brace

AnswerFormat = Literal["boxed", "tag", "phrase", "hashes", "label", "number", "whole"]
"""Formats of stated answers; see :func:`find_final_answer`."""

MARKED_FORMATS: tuple[AnswerFormat, ...] = ("boxed", "tag", "phrase", "hashes", "label")
"""Formats that mark an answer explicitly; the others take whatever is there."""

_ANSWER = r"(?:the )?(?:final |correct |right )?answer"
_KEYED = r'"(?:final[_ ])?answer"\s*+:\s*+("(?:[^"\\]|\\.)*+"|[^\s",{}\[\]]++)\s*+(?=[,}])'
_LABEL = re.compile(
    rf"(?:^[ \t>#*_&-]*+|\\\[|\\\(|\$)[ \t]*+{_ANSWER}[*_]*+"
    r"(?:[ \t]*+[:=][*_]*+[ \t]*+(?P<here>\S.*)|[ \t:*_]*+(?P<below>\n\s*+\S.*))"
    rf"|(?P<key>){_KEYED}",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_NUMBER = re.compile(r"(?:(?<![\w)\]}.])[-\u2212])?(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?%?")
_PHRASE = re.compile(
    r"the (?:final |correct |right )?answer(?: (?:to|for) (?:the|this|your)(?: \w{1,20}){1,4})? is|final answer:",
    re.IGNORECASE,
)
_STATING_TEXT = re.compile(
    r"\\(?:text\w{0,6}|math(?:rm|bf|it|sf)|mbox|emph)\s*\{(?=[^{}]{0,60}?answer)((?:[^{}]|\{[^{}]*+\})*+)\}",
    re.IGNORECASE,
)
_RETRACTION = (
    r"\s{0,20}(?:or(?! equivalently)|no(?=[,.!]| wait)|wait|maybe|perhaps|actually|hmm|oops|sorry|hold on|scratch that"
    r"|on second thought|I (?:made a mistake|was wrong))(?![a-z])"
)
_SENTENCE_END = re.compile(
    r"(?:\n|(?<!\bvs)(?<!\bcf)(?<!\bviz)(?<!\bresp)(?<!\bi\.e)(?<!\be\.g)(?<!\bRs)(?<!\bSt)"
    r"(?<!\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec))\.(?=\s|$))"
    rf"(?!(?i:{_RETRACTION})|\s{{1,20}}\(?[A-J][.)])"
)
"""Ends of a statement, unless what follows takes it back or goes on to the next option."""

_ROWS = [name + star for name in ("align", "aligned", "gather", "gathered", "equation", "split") for star in ("", "*")]
_BLOCKS = {"```": "```", "$$": "$$", r"\[": r"\]", "$": "$", r"\(": r"\)"} | {
    rf"\begin{{{name}}}": rf"\end{{{name}}}" for name in _ROWS
}
"""Beginnings of code and mathematics that may go on over several lines, and their ends."""

_BULLET = re.compile(r"[ \t]*(?:[-+*\u2022\u2013][ \t]+|>[ \t]*)(\S.*)")
_STRAY_END = re.compile(r"(?:\\\]|\\\)|(?<!\\)\$\$?)$")
_ALIGNED_ROWS = re.compile(
    rf"(?:\$\$)?\s*\\begin\{{({'|'.join(map(re.escape, _ROWS))})\}}((?:(?!\\begin|\\end).)+)\\end\{{\1\}}\s*(?:\$\$)?",
    re.DOTALL,
)
_MARKS = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        *(r"\*\*([^*]+)\*\*!?", r"\*([^*]+)\*", r"_([^_]+)_", r"```(?:[a-z]*\n)?([^`]+)```", r"`([^`]+)`"),
        *(
            r"\\\(((?:(?!\\\)).)+)\\\)",
            r"\\\[((?:(?!\\\]).)+)\\\]",
            r"\$\$?\s*(=[^$]+)\$\$?",
            r"(?:\\[,;: ]|\\q?quad|\s)*+=\s*([^\s=].*)",
        ),
        rf"\{{\s*{_KEYED}[^{{}}]*\}}",
        rf"(?:{_PHRASE.pattern}|{_ANSWER}\s*[:=])[\s*:]*+(.+)",
    )
)
"""What may stand around an answer: emphasis, code, mathematics, an equality sign in front, a key, a phrase."""

_MOST_MARKS = 6


def find_final_answer(text: str, formats: Sequence[AnswerFormat] = MARKED_FORMATS) -> str | None:
    r"""Return the last answer stated in the first of some formats that occurs.

    ``boxed`` is the content of ``\boxed{}``; ``tag`` that of ``<answer></answer>``; ``phrase`` is what follows "the
    answer is", "the final answer to this problem is" or "final answer:" in its sentence; ``hashes`` what follows
    ``####`` in its line; ``label`` what follows "Answer:" at the beginning of a line, or the key "answer" of JSON. A
    phrase or a label that ends its line introduces the next one, the bullets, the block of code or the display below.
    It may stand in a text of LaTeX. ``number`` is the last number, whatever it is, and ``whole`` the completion itself.
    Marks of emphasis, code and mathematics, an equality sign and a phrase in front of an answer are taken off. A
    sentence that begins with "No," or "Or" belongs to the answer that it takes back or adds to.

    What stands between the marks of :data:`~rlcredit.policy.prompt_format.THINKING_TAGS` is no statement. A completion
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
    spoken = _STATING_TEXT.sub(r"\1 ", _STATING_TEXT.sub(r"\1 ", drop_thinking(text)))
    if "boxed" in formats and _find_boxes(spoken)[-1:] == [None]:
        return None
    for name in formats:
        answer = FORMAT_RULES[name].find(spoken)
        if answer is not None:
            return _strip_marks(answer)
    return None


_THOUGHTS = [[re.compile(re.escape(mark), re.IGNORECASE) for mark in marks] for marks in THINKING_TAGS.items()]


def drop_thinking(text: str) -> str:
    """Return the text after the thinking; empty if the completion has not finished thinking.

    Example:
        >>> drop_thinking("<think>7?</think>5"), drop_thinking("7?</think>5"), drop_thinking("5 <think>7")
        ('5', '5', '')

    """
    for opening, closing in _THOUGHTS:
        text = closing.split(text)[-1]
        if opening.search(text):
            return ""
    return text


def _strip_marks(answer: str) -> str:
    """Return an answer without what may stand around it, the rows of aligned equations joined."""
    for _ in range(_MOST_MARKS):
        match = next(filter(None, (pattern.fullmatch(answer) for pattern in _MARKS)), None)
        if match is None:
            break
        answer = _strip_quotes(match[match.lastindex or 0].strip())
    rows = _ALIGNED_ROWS.fullmatch(answer)
    return _strip_marks(_join_rows(rows[2])) if rows else answer


def _strip_quotes(value: str) -> str:
    """Return a string of JSON as it reads; other texts as they are."""
    return value[1:-1].replace(r"\\", "\\") if len(value) > 1 and value[0] == value[-1] == '"' else value


def _join_rows(rows: str) -> str:
    """Return aligned rows as a list; a row that begins with an equality sign goes on with the row before."""
    text = re.sub(r"\\\\\s*&?\s*(?==)", " ", rows)
    parts = (" ".join(part.replace("&", " ").split()).strip(" ,") for part in text.split(r"\\"))
    return ", ".join(filter(None, parts))


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])")


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
    tail = text[start:].lstrip()
    opening = len(text) - len(tail)
    if not tail.startswith("{"):
        word = tail.split(maxsplit=1)[:1]
        return (word[0].strip("$.,") if word else None), opening + len("".join(word))
    closing = find_closing_brace(text, opening)
    return (None, len(text)) if closing is None else (text[opening + 1 : closing].strip(), closing + 1)


def _find_last_box(text: str) -> str | None:
    boxes = _find_boxes(text)
    return boxes[-1] if boxes else None


def _find_after_phrase(text: str) -> str | None:
    places = [match.end() for match in _PHRASE.finditer(text)]
    return _take_statement(text[places[-1] :]) if places else None


def _take_statement(text: str) -> str | None:
    """Return the bullets below, the code or mathematics that the text begins with, or else its first sentence."""
    if bullets := _take_bullets(text):
        return bullets
    text = text.lstrip(": *&\t\r\n")
    opening = next((mark for mark in _BLOCKS if text.startswith(mark)), "")
    content, end_mark, _ = text.removeprefix(opening).partition(_BLOCKS.get(opening, "\n"))
    if opening and end_mark and "\n" in content:
        return opening + content + end_mark
    sentence = _SENTENCE_END.split(text, maxsplit=1)[0].strip("* \t\r\f\v")
    return _drop_stray_end(sentence) or None


def _take_bullets(text: str) -> str:
    """Return the items of a list on the lines below; nothing where there is none."""
    head, _, tail = text.partition("\n")
    items = list[str]()
    for line in [] if head.strip(" :*_\t") else tail.strip("\n").split("\n"):
        bullet = _BULLET.fullmatch(line.rstrip())
        if bullet is None:
            break
        items.append(_strip_marks(_SENTENCE_END.split(bullet[1], maxsplit=1)[0]))
    return ", ".join(items)


def _drop_stray_end(statement: str) -> str:
    """Return a statement without the end of mathematics that began before it."""
    end = _STRAY_END.search(statement)
    if end is None:
        return statement
    closing = end[0]
    opening = {r"\]": r"\[", r"\)": r"\("}.get(closing, closing)
    plain_text = statement.replace(r"\$", "")
    is_stray = plain_text.count(closing) % 2 == 1 if opening == closing else opening not in statement
    return statement[: end.start()].rstrip() if is_stray else statement


def _find_after_label(text: str) -> str | None:
    for label in reversed(list(_LABEL.finditer(text))):
        if label["key"] is not None:
            return _strip_quotes(label[label.lastindex or 0])
        if answer := _take_statement(text[label.start("here" if label["here"] else "below") :]):
            return answer
    return None


def _find_last_number(text: str) -> str | None:
    numbers = _ANY_NUMBER.findall(text)
    return numbers[-1] if numbers else None


def _take_whole_text(text: str) -> str | None:
    return text.strip().removesuffix(".").strip() or None


def _find_after_hashes(text: str) -> str | None:
    _, mark, tail = text.rpartition("####")
    return tail.partition("\n")[0].strip() or None if mark else None


def _find_in_tag(text: str) -> str | None:
    head, mark, _ = text.rpartition("</answer>")
    _, opening, answer = head.rpartition("<answer>")
    return answer.strip() or None if mark and opening else None


class FormatRule(NamedTuple):
    """An answer format.

    Attributes:
        find: Function that returns the last answer of a text in this format; None if there is none.
        statement: Text that states ``ANSWER`` in this format.
        mark: Text that marks an answer, for messages.

    """

    find: Callable[[str], str | None]
    statement: str
    mark: str


FORMAT_RULES: dict[AnswerFormat, FormatRule] = {
    "boxed": FormatRule(_find_last_box, r"\boxed{ANSWER}", r"`\boxed{}`"),
    "tag": FormatRule(_find_in_tag, "<answer>ANSWER</answer>", "`<answer>`"),
    "phrase": FormatRule(_find_after_phrase, "The answer is ANSWER.", "`the answer is`"),
    "hashes": FormatRule(_find_after_hashes, "#### ANSWER", "`####`"),
    "label": FormatRule(_find_after_label, "Answer: ANSWER", "`Answer:`"),
    "number": FormatRule(_find_last_number, "ANSWER", "number"),
    "whole": FormatRule(_take_whole_text, "ANSWER", "text"),
}


def state_answer(answer: str, formats: Sequence[AnswerFormat] = MARKED_FORMATS) -> list[str]:
    r"""Return completions that state only an answer, one in each format.

    Example:
        >>> state_answer("42", formats=("boxed", "hashes"))
        ['\\boxed{42}', '#### 42']

    """
    return [FORMAT_RULES[name].statement.replace("ANSWER", answer) for name in formats]
