"""Accept only answers that are plain mathematics; refuse all others in linear time, before a parser sees them.

An answer may have whatever its reference has: depth, length, commands.
"""

import re
from collections.abc import Collection
from itertools import accumulate

MAX_ANSWER_CHARACTERS = 20_000
"""Characters of any answer: the longest grids of reasoning-gym have 2,000."""

LONGEST_EXPRESSION, MAX_BRACKET_DEPTH, LONGEST_NUMBER = 500, 8, 50
"""Characters, brackets in brackets, digits: beyond them parsing takes seconds. Answers of MATH come nowhere near."""

_HUGE_DECIMAL = re.compile(r"\d[eE][+-]?\d{4}")
_TOKEN = re.compile(
    r"\s+|(?P<number>(?:\d+\.?\d*|\.\d+)(?![A-Za-z_]))|(?P<name>[A-Za-z]+)|(?P<operator>\*\*|[-+*/(),])", re.ASCII
)
_POWER = re.compile(r"(?:\^|\*\*)[\s{(+-]*(\d+)")
_TOWER = re.compile(r"\d[\s})]*(?:\^|\*\*)[\s{(+-]*\d+[\s})]*(?:\^|\*\*)")


def is_short_answer(answer: str, reference: str) -> bool:
    """Whether a scorer that compares texts may see the answer: not too long, no decimal of a million digits."""
    return len(answer) <= max(MAX_ANSWER_CHARACTERS, 2 * len(reference)) and not (
        _HUGE_DECIMAL.search(answer) and not _HUGE_DECIMAL.search(reference)
    )


def is_plain_expression(answer: str, variables: Collection[str] = (), functions: Collection[str] = ()) -> bool:
    """Whether an answer in Python's notation is arithmetic: numbers, operators, these variables, these functions.

    Args:
        answer: Answer, for example ``2*x**2/3 + C``.
        variables: Names that may stand alone.
        functions: Names that a bracket must follow; no other name may have one.

    Example:
        >>> is_plain_expression("2*x + sin(x)", "x", ["sin"]), is_plain_expression("(3+5)/2")
        (True, True)
        >>> is_plain_expression("x.args", "x")
        False

    """
    if len(answer) > LONGEST_EXPRESSION or _count_open_brackets(answer) > MAX_BRACKET_DEPTH or _has_huge_number(answer):
        return False
    tokens, end = [], 0
    while end < len(answer):
        token = _TOKEN.match(answer, end)
        if token is None:
            return False
        tokens, end = tokens + [token] * (token.lastgroup is not None), token.end()
    followers = [*(token[0] for token in tokens[1:]), ""]
    return bool(tokens) and all(
        token[0] in (functions if follower == "(" else variables)
        for token, follower in zip(tokens, followers, strict=True)
        if token.lastgroup == "name"
    )


def is_plain_latex(answer: str, reference: str) -> bool:
    r"""Whether an answer in LaTeX is short, shallow and small enough that reading it takes little time.

    Example:
        >>> [is_plain_latex(text, "5") for text in (r"\frac{10}{2}", "9" * 60, "{" * 9 + "5" + "}" * 9, "9^{9^{9}}")]
        [True, False, False, False]

    """
    if len(answer) > max(LONGEST_EXPRESSION, 2 * len(reference)) or _count_open_brackets(answer) > max(
        MAX_BRACKET_DEPTH, _count_open_brackets(reference)
    ):
        return False
    return not _has_huge_number(answer) or _has_huge_number(reference)


def _count_open_brackets(text: str) -> int:
    """Return the largest number of open brackets, matching or not."""
    depths = accumulate((character in "([{") - (character in ")]}") for character in text)
    return max(depths, default=0)


def _has_huge_number(text: str) -> bool:
    """Whether a number has too many digits, or a power is too high."""
    powers = [match[1] for match in _POWER.finditer(text)]
    exponent = 1
    for match in re.finditer(r"[)}]\s*(?:\^|\*\*)[\s{(+-]*(\d{1,3})", text):
        exponent *= max(1, int(match[1]))
    return bool(
        re.search(rf"\d{{{LONGEST_NUMBER + 1}}}|\d{{4,}}\s*!", text)
        or any(len(power) > 3 for power in powers)
        or _TOWER.search(text)
        or exponent > 100_000
    )
