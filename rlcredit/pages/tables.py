"""The table that every page, report and terminal shows, and how it is written in Markdown and as plain text."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


class TableCell(str):
    """A cell with what only an HTML page can show.

    Args:
        text: Text of the cell.
        sort_key: Number by which the column is sorted; empty where there is none, which comes last.
        hint: Text shown while the cell is pointed at.
        css_class: Class that colours the text.

    """

    sort_key: object
    hint: str
    css_class: str

    def __new__(cls, text: str, sort_key: object = None, hint: str = "", css_class: str = "") -> "TableCell":
        """Return the text as a cell."""
        cell = super().__new__(cls, text)
        cell.sort_key = sort_key
        cell.hint = hint
        cell.css_class = css_class
        return cell


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns.

    Args:
        columns: Heads of the columns.
        rows: Rows, one cell per column each.
        text_columns: Heads of the columns that hold text and are aligned to the left, besides the first.
        highlighted: First cells of the rows that an HTML page highlights.

    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Collection[str] = ()
    highlighted: Collection[str] = ()

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
        aligned = (
            [
                cell.ljust(width) if self.is_text(place) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            for line in lines
        )
        return "\n".join("   ".join(cells).rstrip() for cells in aligned)


def _format_markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in escaped)
