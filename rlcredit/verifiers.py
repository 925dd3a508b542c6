"""Verifiers: is the final answer right, wrong, or could nobody tell?"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction

from rlcredit.workers import Worker


class Verdict(Enum):
    """What a verifier says. ``UNJUDGED`` is not a zero: such a completion neither earns nor owes."""

    RIGHT = "right"
    WRONG = "wrong"
    UNJUDGED = "could not judge"


_PHRASE = re.compile("the answer is", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?")
_LONGEST_NUMBER = 200
"""Characters; what is longer is a loop of the policy, and Python refuses to read integers of thousands of digits."""
_LATEX_FRACTION = re.compile(r"([+-]?)\\[dt]?frac\{(\d+)\}\{(\d+)\}")


def final_answer(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}``; without one, what follows the last "the answer is".

    Example:
        >>> final_answer(r"so \boxed{1}, no: \boxed{\frac{1}{2}}"), final_answer("The answer is 3.5. Done.")
        ('\\frac{1}{2}', '3.5')
        >>> final_answer("I do not know") is None
        True

    """
    boxes = [box for box in map(_boxed, text.split(r"\boxed")[1:]) if box is not None]
    if boxes:
        return boxes[-1]
    places = [match.end() for match in _PHRASE.finditer(text)]
    if not places:
        return None
    rest = text[places[-1] :].partition("\n")[0].lstrip(": ")
    answer = re.split(r"\.(?=\s|$)", rest, maxsplit=1)[0]
    return answer.strip(" *") or None


def _boxed(after: str) -> str | None:
    r"""Return what a ``\boxed`` holds, given the text after it; None if it never closes."""
    if not after.startswith("{"):
        word = after.split(maxsplit=1)[:1]
        return word[0].strip("$.,") if word and after.startswith(" ") else None
    depth = 0
    for end, character in enumerate(after):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return after[1:end].strip()
    return None


def number(text: str) -> Fraction | None:
    r"""Read an integer, decimal or fraction exactly; None if it is something else.

    Example:
        >>> number("1,000") == 1000, number("0.5") == number(r"\frac{1}{2}") == number("2/4"), number("x") is None
        (True, True, True)

    """
    if len(text) > _LONGEST_NUMBER:
        return None
    text = text.strip().strip("$").strip().replace("\N{MINUS SIGN}", "-")
    latex = _LATEX_FRACTION.fullmatch(text)
    top, slash, bottom = ("".join(latex.group(1, 2)), "/", latex[3]) if latex else text.partition("/")
    parts = [top.strip(), bottom.strip()] if slash else [top]
    if not all(part.strip("+-.") and _NUMBER.fullmatch(part) for part in parts):
        return None
    values = [Fraction(part.replace(",", "")) for part in parts]
    if len(values) == 1:
        return values[0]
    return values[0] / values[1] if values[1] else None


def exact_verdict(answer: str, reference: str) -> Verdict | None:
    """Compare as strings, then as numbers; None if neither decides."""
    if _plain(answer) == _plain(reference):
        return Verdict.RIGHT
    ours, theirs = number(answer), number(reference)
    if ours is not None and theirs is not None:
        return Verdict.RIGHT if ours == theirs else Verdict.WRONG
    return None


def _plain(text: str) -> str:
    return re.sub(r"\s+|\\[,!;: ]|\$", "", text).casefold()


class MathVerifier:
    """Exact comparison first; what it cannot decide goes to math-verify in a process that is killed when it hangs.

    math-verify interrupts itself with alarm signals, which work in a main thread only and not inside compiled code;
    a process of its own, ended from outside, always returns.

    Args:
        timeout: seconds that one comparison may take before it counts as *could not judge*.

    """

    def __init__(self, timeout: float = 5.0) -> None:
        if not timeout > 0:
            raise ValueError(f"MathVerifier expects timeout > 0 seconds, got {timeout}.")
        self.timeout = timeout
        self.worker = Worker(symbolic_judge)

    def judge(self, completions: Sequence[str], references: Sequence[str]) -> list[Verdict]:
        """Judge each completion against its reference; an empty reference never matches."""
        return [self.verdict(text, reference) for text, reference in zip(completions, references, strict=True)]

    def verdict(self, completion: str, reference: str) -> Verdict:
        """Judge one completion; without a final answer it is wrong."""
        answer = final_answer(completion)
        if not reference.strip() or not answer:
            return Verdict.WRONG
        exact = exact_verdict(answer, reference)
        return exact or self.worker.ask(answer, reference, timeout=self.timeout) or Verdict.UNJUDGED


def symbolic_judge() -> Callable[[str, str], Verdict]:
    """Return the comparison of mathematical expressions; made in the worker, where math-verify is imported."""
    import logging  # noqa: PLC0415

    import math_verify  # noqa: F401, PLC0415  (imported before the first request, so that no comparison pays for it)

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    return symbolic_verdict


def symbolic_verdict(answer: str, reference: str) -> Verdict:
    """Compare as mathematical expressions; what math-verify stumbles over is not judged."""
    from math_verify import parse, verify  # noqa: PLC0415

    try:
        gold, ours = (
            parse(f"${text.strip('$')}$", parsing_timeout=None, raise_on_error=True)  # pyright: ignore[reportArgumentType]
            for text in (reference, answer)
        )
        if all(isinstance(expression, str) for expression in gold):
            return Verdict.UNJUDGED  # the reference could not be read; its text alone has already been compared
        return Verdict.RIGHT if verify(gold, ours, timeout_seconds=None, raise_on_error=True) else Verdict.WRONG
    except Exception:  # noqa: BLE001  (whatever a computer algebra system may raise, it is not a wrong answer)
        return Verdict.UNJUDGED
