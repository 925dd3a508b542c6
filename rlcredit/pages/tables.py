"""The table that every page, report and terminal shows, and how it is written in Markdown and as plain text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlcredit.pages.charts import IntervalStrip, StripScale


class TableCell(str):
    """A cell with what only an HTML page can show.

    Args:
        text: Text of the cell.
        sort_key: Number by which the column is sorted; empty where there is none, which comes last.
        hint: Text shown while the cell is pointed at.
        css_class: Class that colours the text.
        detail: Smaller text below it, such as its interval.
        drawn: Interval on the scale of its column, drawn in place of the text.

    """

    sort_key: object
    hint: str
    css_class: str
    detail: str
    drawn: IntervalStrip | None

    def __new__(
        cls,
        text: str,
        sort_key: object = None,
        hint: str = "",
        css_class: str = "",
        detail: str = "",
        drawn: IntervalStrip | None = None,
    ) -> "TableCell":
        """Return the text as a cell."""
        cell = super().__new__(cls, text)
        cell.sort_key = sort_key
        cell.hint = hint
        cell.css_class = css_class
        cell.detail = detail
        cell.drawn = drawn
        return cell


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns.

    Args:
        columns: Heads of the columns.
        rows: Rows, one cell per column each.
        text_columns: Heads of the columns that hold text and are aligned to the left, besides the first.
        highlighted: First cells of the rows that an HTML page highlights.
        terms: Meanings of heads of columns, which an HTML page explains below the table.
        note: Sentence that stands below it.

    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Collection[str] = ()
    highlighted: Collection[str] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def explained_columns(self) -> dict[str, str]:
        """Heads of the columns that need an explanation, with it."""
        return {column: self.terms[column] for column in self.columns if column in self.terms}

    @property
    def column_scales(self) -> list[StripScale | None]:
        """Scales of the columns that are drawn, None for the others; an HTML page draws the axes below the columns."""
        columns = zip(*self.rows, strict=True) if self.rows else ()
        return [_find_scale(cells) for cells in columns]

    def without_columns(self, names: Collection[str]) -> "Table":
        """Return the table without some columns.

        Example:
            >>> Table(("", "a", "b"), [("x", "1", "2")]).without_columns(["a"]).rows
            [('x', '2')]

        """
        places = [place for place, column in enumerate(self.columns) if column not in names]
        rows = [tuple(row[place] for place in places) for row in self.rows]
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=rows)

    def without_empty_columns(self, empty: str) -> "Table":
        """Return the table without the columns in which every row has nothing, as long as there are rows."""
        columns = zip(self.columns, zip(*self.rows, strict=True), strict=False) if self.rows else ()
        return self.without_columns([name for name, cells in columns if set(cells) == {empty}])

    def find_constant_columns(self) -> dict[str, str]:
        """Return the columns after the first that have the same text in every row, with it; none for a single row.

        Example:
            >>> Table(("", "a", "b"), [("x", "1", "2"), ("y", "1", "3")]).find_constant_columns()
            {'a': '1'}

        """
        columns = list(zip(*self.rows, strict=True)) if len(self.rows) > 1 else []
        pairs = list(zip(self.columns, columns, strict=False))[1:]
        return {name: str(cells[0]) for name, cells in pairs if len(set(cells)) == 1}

    def is_text(self, place: int) -> bool:
        """Whether a column is aligned to the left."""
        return place == 0 or self.columns[place] in self.text_columns

    def to_markdown(self) -> str:
        r"""Return the table as Markdown; a ``|`` in a cell separates no columns.

        Example:
            >>> print(Table(("", "pass@1"), [("a|b", "0.5"), ("all", "")]).to_markdown())
            | | pass@1 |
            |---|---|
            | a\|b | 0.5 |
            | all | |

        """
        head, *rows = map(_format_markdown_row, (self.columns, *self.rows))
        return "\n".join([head, "|---" * len(self.columns) + "|", *rows])

    def to_text(self) -> str:
        """Return the table as aligned text for a terminal.

        Example:
            >>> print(Table(("policy", "pass@1"), [("base", "0.5"), ("taught", "0.75")]).to_text())
            policy   pass@1
            base        0.5
            taught     0.75

        """
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned_rows = (
            [
                cell.ljust(width) if self.is_text(place) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            for line in lines
        )
        return "\n".join("   ".join(cells).rstrip() for cells in aligned_rows)


def _find_scale(cells: Sequence[str]) -> StripScale | None:
    return next((cell.drawn.scale for cell in cells if isinstance(cell, TableCell) and cell.drawn), None)


def _format_markdown_row(cells: Sequence[str]) -> str:
    texts = (cell.replace("|", "\\|") for cell in cells)
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in texts)
