"""Equality of values by computer algebra; a module of its own so that its worker stays small."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rlcredit.verification.fault_attribution import judge_or_blame
from rlcredit.verification.mathematics.agreement import has_constant_ratio, is_same_function
from rlcredit.verification.mathematics.equality import UndecidedError, UnreadableReferenceError
from rlcredit.verification.mathematics.expressions import LIST_FUNCTION, ExactEquality
from rlcredit.verification.mathematics.reference_kinds import is_equal_answer
from rlcredit.verification.worker_process import import_submodules, warm_up_judge

NEVER_ASKED = frozenset(
    re.findall(
        r"\w+",
        """benchmarks biomechanics conftest continuum_mechanics control crypto galgebra hep interactive mechanics optics
        parsing plotting printing quantum release sandbox sampling testing tests this vector_doc hyperexpand_doc
        meijerint_doc compatibility trace pytest randtest runtests tmpfiles _compilation autowrap""",
    )
)
"""Modules of sympy that are no mathematics: printers, plots, tests, examples, what is deprecated or compiles."""

_WARM_UP = (("x+1", "1+x"), ("2", r"\frac{1}{2}"), (r"\sqrt{8}", r"2\sqrt{2}"), (r"\sin{x}", "x"), ("2x = y", "y = 2x"))


def make_symbolic_judge() -> Callable[..., float | None]:
    """Return the comparison of mathematical expressions; made in the worker, where math-verify is imported."""
    preload_sympy()
    return warm_up_judge(judge_symbolically, _WARM_UP)


def preload_sympy() -> None:
    """Import what sympy imports late."""
    import_submodules("sympy", NEVER_ASKED)


def judge_symbolically(answer: str, reference: str, tolerance: float = 0.0) -> float | None:
    """Return 1 for equal things, 0 for others, None if the reference itself cannot be read or compared.

    Args:
        answer: Answer as the completion states it.
        reference: Reference answer as the data set writes it.
        tolerance: How far their values may differ, as a share of the reference's, where both have one.

    """
    values = SymbolicEquality(tolerance)
    return judge_or_blame(
        lambda: float(is_equal_answer(answer, reference, values)),
        lambda: is_equal_answer(f"({reference})", reference, values),
    )


class SymbolicEquality:
    """Equality of values by math-verify's parser and by sympy, where comparing exactly decides nothing.

    Args:
        tolerance: How far two numbers may differ, as a share of the reference.

    """

    def __init__(self, tolerance: float = 0.0) -> None:
        self.exact = ExactEquality(tolerance)

    def is_equal(self, answer: str, reference: str, factor: Fraction = Fraction(1)) -> bool:
        """Whether an answer, multiplied by a factor, has the value of its reference.

        Raises:
            UnreadableReferenceError: the reference is no value.

        """
        try:
            return self.exact.is_equal(answer, reference, factor)
        except UndecidedError:
            theirs, ours = _parse_reference(reference), _parse_expression(answer)
        tolerance = self.exact.tolerance
        ours = ours if factor == 1 else ours * factor.numerator / factor.denominator
        return is_same_value(ours, theirs) or (tolerance > 0 and _is_near_reference(ours, theirs, tolerance))

    def is_proportional(self, answer: str, reference: str, positive: bool) -> bool:
        """Whether their ratio is a constant other than zero; greater than zero if ``positive``.

        Raises:
            UnreadableReferenceError: the reference is no value.

        """
        try:
            return self.exact.is_proportional(answer, reference, positive)
        except UndecidedError:
            return _is_proportional(_parse_expression(answer), _parse_reference(reference), positive)


def _parse_reference(text: str) -> Any:
    try:
        return _parse_expression(text)
    except Exception:  # noqa: BLE001  (whatever a parser may raise, the reference caused it)
        raise UnreadableReferenceError(text) from None


_REWRITTEN = (
    (LIST_FUNCTION, r"\1(\2)"),
    (re.compile(r"\\text\{\s*([^{}]*?)\s*\}"), r"\1"),
    (re.compile(r"(\d)[eE]([+-]?\d{1,3})(?!\d)"), r"\1 \\cdot 10^{\2}"),
    (re.compile(r"(\d+(?:\.\d+)?|[A-Za-z]|\\[a-z]+ ?)\s*\^\{\\circ\}"), r"(\1 \\cdot \\frac{\\pi}{180})"),
    (re.compile(r"\\imath(?![A-Za-z])"), "i"),
    (re.compile(r"\\lg(?![A-Za-z])"), r"\\log_{10}"),
    (re.compile(r"(\\(?:ln|log)(?:_\{\w+\})?)\s*(\d+|[a-z])\s*/"), r"(\1 \2)/"),
    (re.compile(r"!\s*(?=\d)"), r"! \\cdot "),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\^\{\+"), "^{"),
    (re.compile(r"(?<![A-Za-z\\])([ei])\s*\("), r"\1 \\cdot ("),
    (re.compile(r"\)\s*(?=\d)"), r") \\cdot "),
    (re.compile(r"(?<![\d.}])(\d+)\s*(\\frac\{\d+\}\{\d+\})"), r"(\1+\2)"),
    (re.compile(r"_\{\s*\\([A-Za-z]+)\s*\}"), r"_{\1}"),
    (re.compile(r"(?<![A-Za-z\\])([eEiI])_\{(\w+)\}"), r"x_{\1\2}"),
    (
        re.compile(r"\\frac\{\s*d(?:\^\{(\d)\})?\s*\\?([A-Za-z]+)\s*\}\{\s*d\s*\\?([A-Za-z]+)(?:\^\{\d\})?\s*\}"),
        r"D_{\2\3\1}",
    ),
)
_DECIMAL = re.compile(r"(?<![\d_{])(?:\d+\.\d*|\.\d+)|(?<=\{)(?:\d+\.\d*|\.\d+)")


def _make_parser() -> Any:
    """Return math-verify's parser, made to multiply whole numbers by what follows, where it would add fractions."""
    import sympy  # noqa: PLC0415
    from latex2sympy2_extended import latex2sympy2  # noqa: PLC0415

    class Parser(latex2sympy2._Latex2Sympy):
        def convert_postfix_list(self, arr: Any, i: int = 0) -> Any:
            head = self.convert_postfix(arr[i]) if i < len(arr) - 1 else None
            tail = self.convert_postfix_list(arr, i + 1) if isinstance(head, sympy.Integer) else None
            return self.mul_flat(head, tail) if isinstance(tail, sympy.Expr) else super().convert_postfix_list(arr, i)

    return Parser(None, None, False, config=latex2sympy2.ConversionConfig(lowercase_symbols=False))


def _parse_expression(text: str) -> Any:
    """Return a text in normal form as sympy has it: decimals exact, ``i`` the imaginary unit."""
    import sympy  # noqa: PLC0415

    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    expression = _make_parser().parse(_DECIMAL.sub(_write_decimal_as_fraction, text))
    if not isinstance(expression, sympy.Basic | sympy.MatrixBase) or expression.has(sympy.Derivative):
        raise TypeError(expression)
    return expression.subs(sympy.Symbol("i"), sympy.I)


def _write_decimal_as_fraction(decimal: re.Match[str]) -> str:
    value = Fraction(decimal[0] if not decimal[0].endswith(".") else decimal[0] + "0")
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})" if value.denominator > 1 else f"({value.numerator})"


def is_same_value(ours: Any, theirs: Any) -> bool:
    """Whether two expressions of sympy have one value, whatever their names stand for."""
    import sympy  # noqa: PLC0415

    if isinstance(ours, sympy.MatrixBase) or isinstance(theirs, sympy.MatrixBase):
        fit = isinstance(ours, sympy.MatrixBase) and isinstance(theirs, sympy.MatrixBase) and ours.shape == theirs.shape
        return fit and all(is_same_value(our, their) for our, their in zip(ours.flat(), theirs.flat(), strict=True))
    if not (isinstance(ours, sympy.Expr) and isinstance(theirs, sympy.Expr)):
        return bool(ours == theirs)
    ours, theirs = ours.doit(), theirs.doit()
    if ours == theirs:
        return True
    undefined_values = {sympy.nan, sympy.zoo, sympy.oo, -sympy.oo}
    if ours in undefined_values or theirs in undefined_values:
        return False
    difference = ours - theirs
    if difference.is_Rational:
        return bool(difference == 0)
    is_same = is_same_function(ours, theirs)
    return bool(sympy.simplify(difference) == 0) if is_same is None else is_same


def _is_proportional(ours: Any, theirs: Any, positive: bool) -> bool:
    import sympy  # noqa: PLC0415

    if ours.free_symbols != theirs.free_symbols or not ours.free_symbols:
        return False
    ours, theirs = ours.doit(), theirs.doit()
    proportional = has_constant_ratio(ours, theirs, positive)
    if proportional or positive:
        return proportional
    our_top, their_top = (sympy.numer(sympy.together(expression)) for expression in (ours, theirs))
    return has_constant_ratio(our_top, their_top, positive)


def _is_near_reference(ours: Any, theirs: Any, tolerance: float) -> bool:
    value, target = complex(ours.evalf()), complex(theirs.evalf())
    return abs(value - target) <= tolerance * abs(target)
