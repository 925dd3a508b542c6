"""Comparison of mathematical expressions by math-verify; a module of its own so that its worker stays small."""

import logging
import re
from collections.abc import Callable
from typing import Any

from rlcredit.verification.serving import preload, warmed

NEVER_ASKED = frozenset(
    re.findall(
        r"\w+",
        """benchmarks biomechanics conftest continuum_mechanics control crypto galgebra hep interactive mechanics optics
        parsing plotting printing quantum release sandbox sampling testing tests this vector_doc hyperexpand_doc
        meijerint_doc compatibility trace pytest randtest runtests tmpfiles _compilation autowrap""",
    )
)
"""Modules of sympy that are no mathematics: printers, plots, tests, examples, what is deprecated or compiles."""

_WARM_UP = (("x+1", "1+x"), ("2", r"\frac{1}{2}"), (r"\sqrt{8}", r"2\sqrt{2}"), ("[1,2)", r"\{1,2\}"), ("x<1", "x>1"))


def symbolic_judge() -> Callable[..., float | None]:
    """Return the comparison of mathematical expressions; made in the worker, where math-verify is imported."""
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    preload_sympy()
    return warmed(symbolic_score, _WARM_UP)


def preload_sympy() -> None:
    """Import what sympy imports late."""
    preload("sympy", NEVER_ASKED)


def symbolic_score(answer: str, reference: str, tolerance: float = 0.0) -> float | None:
    """Return 1 for equal expressions, 0 for others, None if the reference itself cannot be read or compared.

    Args:
        answer: in LaTeX.
        reference: likewise.
        tolerance: how far their values may differ, as a share of the reference's, where both have one.

    """
    import math_verify  # noqa: PLC0415

    gold = _readable(reference)
    if gold is None:
        return None  # its text alone has already been compared
    try:
        ours = _parsed(answer)
        equal = math_verify.verify(gold, ours, timeout_seconds=None, raise_on_error=True)
        return float(equal or (tolerance > 0 and _near(ours[0], gold[0], tolerance)))
    except Exception:  # noqa: BLE001  (the answer caused it, if the reference compares with itself)
        return fault(lambda: math_verify.verify(gold, gold, timeout_seconds=None, raise_on_error=True))


def _near(ours: Any, gold: Any, tolerance: float) -> bool:
    value, expected = complex(ours.evalf()), complex(gold.evalf())
    return abs(value - expected) <= tolerance * abs(expected)


def _readable(reference: str) -> list[Any] | None:
    try:
        gold = _parsed(reference)
    except Exception:  # noqa: BLE001  (whatever a computer algebra system may raise, the reference caused it)
        return None
    return None if all(isinstance(expression, str) for expression in gold) else gold


def _parsed(text: str) -> list[Any]:
    from math_verify import parse  # noqa: PLC0415

    return parse(f"${text.strip('$')}$", parsing_timeout=None, raise_on_error=True)  # pyright: ignore[reportArgumentType]


def fault(judged: Callable[[], bool]) -> float | None:
    """Return the score of an answer on which the judge raised: 0 if the reference alone passes, else None."""
    try:
        return 0.0 if judged() else None
    except Exception:  # noqa: BLE001  (the judge is at fault)
        return None
