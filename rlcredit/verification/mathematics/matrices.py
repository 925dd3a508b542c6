r"""Matrices and functions by cases."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.structure import has_same_items_in_order

_TABLE = re.compile(
    r"(?P<name>[^&]*?)\s*(?P<open>[(\[|]|\\\{)?\s*\\begin\s*\{(?P<kind>(?:[pbvVB]?matrix|smallmatrix|array|cases)\*?)\}"
    r"\s*(?:\{[lcr| ]+\}|\[[lcr]\])?(?P<body>(?:(?!\\begin|\\end).)*)\\end\s*\{(?P=kind)\}\s*(?P<close>[)\]|]|\\\})?",
    re.DOTALL,
)
_NAMED = re.compile(
    r"(?![\d-])(?!.*\\(?:equiv|quad|text))(?!.*\b(?:not|or|and|isn)\b)(?=[^=]*[A-Za-z])[A-Za-z\\^_{}()'\s0-9-]+=\s*|\s*"
)


def _read_matrix_rows(text: str) -> tuple[str, list[list[str]]] | None:
    """Return what the brackets around a table make of it, and its rows; None if a text is none."""
    found = _TABLE.fullmatch(text)
    if found is None or _NAMED.fullmatch(found["name"]) is None:
        return None
    kind, opening = found["kind"], found["open"] or ""
    cases = kind == "cases" or opening == r"\{"
    bars = kind in ("vmatrix", "Vmatrix") or opening == "|"
    rows = [row.strip() for row in re.split(r"\\\\(?:\s*\[[^\[\]]*\])?", found["body"].replace(r"\hline", ""))]
    cells = [[cell.strip().rstrip(",") for cell in row.split("&")] for row in rows if row]
    return "cases" if cases else "bars" if bars else "matrix", cells


def is_matrix_or_cases(reference: str) -> bool:
    r"""Whether a reference is a matrix, a determinant or a function by cases.

    Example:
        >>> is_matrix_or_cases(r"\begin{pmatrix} 1 \end{pmatrix}"), is_matrix_or_cases("5")
        (True, False)
        >>> is_matrix_or_cases(r"A=\begin{bmatrix}1\end{bmatrix}")
        True

    """
    return _read_matrix_rows(reference) is not None


def is_same_matrix_or_cases(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same cells in the same rows; of round and square brackets either will do."""
    ours, theirs = _read_matrix_rows(answer), _read_matrix_rows(reference)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    return len(ours[1]) == len(theirs[1]) and all(
        has_same_items_in_order(our, their, compare) for our, their in zip(ours[1], theirs[1], strict=True)
    )
