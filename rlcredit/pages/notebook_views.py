"""How pages and rollouts look as the result of a notebook's cell."""

import html
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.files import write_atomically
from rlcredit.pages.turn_blocks import TurnBlock


class InlinePage(str):
    """A whole page as text; a notebook shows it in a frame of its own.

    Example:
        >>> InlinePage("<p>4 + 3</p>")._repr_html_()
        '<iframe srcdoc="&lt;p&gt;4 + 3&lt;/p&gt;" style="width:100%;height:480px;border:0"></iframe>'

    """

    __slots__ = ()

    def save(self, file: str | Path) -> Path:
        """Write the page and return its path; a file that is there is replaced."""
        path = Path(file)
        write_atomically(path, self)
        return path

    def _repr_html_(self) -> str:
        """Return the page in a frame, apart from the notebook's styles and scripts."""
        return f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:480px;border:0"></iframe>'


ShownToken = tuple[str, float | None]
"""A token with its credit, or what stands between the tokens of a policy, without any."""


def mark_turn_blocks(tokens: Sequence[tuple[str, float]], blocks: Sequence[TurnBlock]) -> Sequence[ShownToken]:
    """Return the tokens of an episode with its turns named between them: reward, mean credit, what was answered.

    Args:
        tokens: Sampled tokens with their credit.
        blocks: Turns of the episode; the tokens are returned as they are if there are none.

    """
    if not blocks:
        return tokens
    parts: list[ShownToken] = []
    for number, block in enumerate(blocks, start=1):
        part = tokens[block.start : block.end]
        mean = sum(credit for _, credit in part) / len(part)
        reward = "" if block.reward is None else f"reward {block.reward:.3g}, "
        answer = f"{block.answer}\n" if block.answer else ""
        parts += [(f"turn {number}  ", None), *((text.rstrip("\n"), credit) for text, credit in part)]
        parts.append((f"  {reward}mean credit {mean:+.3g}\n{answer}", None))
    return parts


def render_credit_rows(title: str, rows: Sequence[tuple[str, Sequence[ShownToken]]], legend: str) -> str:
    """Return completions as a table whose tokens are coloured by their credit, green above zero and red below.

    Args:
        title: Line above the table.
        rows: Label of each completion, and its tokens with their credit.
        legend: Line below the table.

    Example:
        >>> "rgba(46,160,67,0.70)" in render_credit_rows("", [("right", [("7", 0.5)])], "")
        True

    """
    largest = max((abs(credit or 0.0) for _, tokens in rows for _, credit in tokens), default=0.0) or 1.0
    lines = []
    for label, tokens in rows:
        spans = "".join(_render_token(text, credit, largest) for text, credit in tokens)
        cells = f'<td style="text-align:left">{html.escape(label)}</td><td style="text-align:left">{spans}</td>'
        lines.append(f"<tr>{cells}</tr>")
    return f"<p>{html.escape(title)}</p><table>{''.join(lines)}</table><p>{html.escape(legend)}</p>"


def _render_token(text: str, credit: float | None, largest: float) -> str:
    """Return a token on a background as strong as its credit; its number is shown when it is pointed at."""
    if credit is None:
        return f'<span style="opacity:.65;white-space:pre-wrap">{html.escape(text)}</span>'
    colour = "46,160,67" if credit > 0 else "218,54,51"
    style = f"background:rgba({colour},{0.7 * abs(credit) / largest:.2f});white-space:pre-wrap"
    return f'<span style="{style}" title="{credit:+.4g}">{html.escape(text)}</span>'
