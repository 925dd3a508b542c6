"""Matrices and vectors."""

import re
from typing import NamedTuple

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name
from rlcredit.verification.mathematics.structure import (
    has_same_items_in_order,
    read_brackets,
    split_outside_brackets,
)

_TRANSPOSED = r"(?P<transposed>\s*\^\{?\s*(?:T|\\top|\\intercal|\\text\{T\})\s*\}?)?"
_TABLE = re.compile(
    r"(?P<name>[^&]*?)\s*(?P<open>[(\[|]|\\\{)?\s*\\begin\s*\{(?P<kind>(?:[pbvVB]?matrix|smallmatrix|array|cases)\*?)\}"
    r"\s*(?:\{[lcr| ]+\}|\[[lcr]\])?(?P<body>(?:(?!\\begin|\\end).)*)\\end\s*\{(?P=kind)\}\s*(?P<close>[)\]|]|\\\})?"
    + _TRANSPOSED,
    re.DOTALL,
)
_NAMED = re.compile(
    r"(?![\d-])(?!.*\\(?:equiv|quad|text))(?!.*\b(?:not|or|and|isn)\b)(?=[^=]*[A-Za-z])[A-Za-z\\^_{}()'\s0-9-]+=\s*|\s*"
)
_UNIT_VECTOR = re.compile(r"(?P<factor>.*?)\s*(?:\\cdot\s*)?(?P<axis>[ijk])", re.DOTALL)
_OTHER_AXIS = re.compile(r"(?<![A-Za-z\\])[ijk](?![A-Za-z])")


class CellTable(NamedTuple):
    r"""What stands between ``\begin`` and ``\end``, with what the brackets around it make of it.

    Attributes:
        kind: ``matrix``, ``bars`` (a determinant) or ``cases``.
        rows: Cells of each row.

    """

    kind: str
    rows: list[list[str]]


def read_table(text: str) -> CellTable | None:
    """Return the table that a text is, with a name in front or without; None if it is none."""
    match = _TABLE.fullmatch(text)
    if match is None or _NAMED.fullmatch(match["name"]) is None:
        return None
    kind, opening = match["kind"], match["open"] or ""
    cases = kind.startswith("cases") or opening == r"\{"
    bars = kind in ("vmatrix", "Vmatrix") or opening == "|"
    lines = [row.strip() for row in re.split(r"\\\\(?:\s*\[[^\[\]]*\])?", match["body"].replace(r"\hline", ""))]
    rows = [[cell.strip().rstrip(",") for cell in line.split("&")] for line in lines if line]
    if match["transposed"] and len({len(row) for row in rows}) == 1:
        rows = [list(column) for column in zip(*rows, strict=True)]
    form = "bars" if bars else "matrix"
    return CellTable("cases" if cases else form, rows)


def read_unit_vectors(text: str) -> list[str]:
    """Return the three components of a sum of unit vectors; none if a text is no such sum.

    Example:
        >>> read_unit_vectors("3i - 2j"), read_unit_vectors("3 + 2i")
        (['3', '-2', '0'], [])

    """
    components = dict[str, str]()
    terms = [term.replace("+-", "-") for term in split_outside_brackets(text.replace("-", "+-"), "+")]
    for term in terms if terms[0] else terms[1:]:
        match = _UNIT_VECTOR.fullmatch(term)
        if match is None or match["axis"] in components or _OTHER_AXIS.search(match["factor"]):
            return []
        factor = re.sub(r"^-\s*", "-", match["factor"])
        components[match["axis"]] = factor + "1" * (factor in ("", "-"))
    return [components.get(axis, "0") for axis in "ijk"] if len(components) > 1 else []


def read_vector(text: str) -> list[str]:
    r"""Return the components of a vector: of ``(1, 2)``, ``\langle 1, 2 \rangle``, one row or column, unit vectors."""
    table = read_table(text)
    if table is not None:
        rows = table.rows if table.kind == "matrix" else []
        if all(len(row) == 1 for row in rows):
            return [row[0] for row in rows]
        return rows[0] if len(rows) == 1 else []
    brackets = read_brackets(re.sub(_TRANSPOSED + "$", "", text))
    if brackets is not None and brackets[::2] in (("(", ")"), (r"\langle", r"\rangle")):
        return split_outside_brackets(brackets[1], ",;")
    return read_unit_vectors(text)


def is_same_vector(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is a vector with the same components; unit vectors leave out what is zero."""
    ours, theirs = read_vector(answer), read_vector(reference)
    size = max(len(ours), len(theirs)) if read_unit_vectors(answer) or read_unit_vectors(reference) else 0
    ours, theirs = (vector + ["0"] * (size - len(vector)) for vector in (ours, theirs))
    return bool(ours) and has_same_items_in_order(ours, theirs, compare)


def is_matrix(reference: str) -> bool:
    r"""Whether a reference is a matrix or a determinant.

    Example:
        >>> is_matrix(r"\begin{pmatrix} 1 \end{pmatrix}"), is_matrix("5"), is_matrix(r"A=\begin{bmatrix}1\end{bmatrix}")
        (True, False, True)

    """
    table = read_table(reference)
    return table is not None and table.kind != "cases"


def is_same_matrix(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same cells in the same rows, or is the vector that a single row or column is."""
    ours, theirs = read_table(answer), read_table(reference)
    if ours is None and len(read_vector(reference)) > 1:
        return is_same_vector(drop_leading_name(answer), reference, compare)
    if ours is None or theirs is None or ours.kind != theirs.kind:
        return False
    return len(ours.rows) == len(theirs.rows) and all(
        has_same_items_in_order(our, their, compare) for our, their in zip(ours.rows, theirs.rows, strict=True)
    )
