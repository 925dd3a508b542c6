r"""Matrices and functions by cases."""

import re

from rlcredit.verification.mathematics.comparison import Comparison
from rlcredit.verification.mathematics.structure import in_order

_TABLE = re.compile(
    r"(?P<before>[^&]*?)\s*(?P<open>[(\[|]|\\\{)?\s*\\begin\s*\{(?P<kind>[pbvVB]?matrix|smallmatrix|array|cases|aligned)\}"
    r"\s*(?:\{[lcr| ]+\})?(?P<body>.*?)\\end\s*\{(?P=kind)\}\s*(?P<close>[)\]|]|\\\})?",
    re.DOTALL,
)


def _read_table(text: str) -> tuple[str, list[list[str]]] | None:
    """Return which brackets a table has, and its rows."""
    found = _TABLE.fullmatch(text)
    if found is None or (found["before"].strip() and not found["before"].rstrip().endswith("=")):
        return None
    kind, opening = found["kind"], found["open"] or ""
    cases = kind == "cases" or opening == r"\{"
    bars = kind in ("vmatrix", "Vmatrix") or opening == "|"
    rows = [row.strip() for row in re.split(r"\\\\(?:\s*\[[^\[\]]*\])?", found["body"].replace(r"\hline", ""))]
    cells = [[cell.strip().rstrip(",") for cell in row.split("&")] for row in rows if row]
    return "cases" if cases else "bars" if bars else "matrix", cells


def is_table(reference: str) -> bool:
    return _read_table(reference) is not None


def is_same_table(answer: str, reference: str, compare: Comparison) -> bool:
    ours, theirs = _read_table(answer), _read_table(reference)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    return len(ours[1]) == len(theirs[1]) and all(
        in_order(our, their, compare) for our, their in zip(ours[1], theirs[1], strict=True)
    )
