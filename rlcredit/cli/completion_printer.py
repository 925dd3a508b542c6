"""Printing completions on a terminal: the text, and log-probability and entropy below every token."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from rlcredit.base.text_escaping import display_width, escape_controls, render_token, unwrap_stream
from rlcredit.cli.sampled_completions import Completion
from rlcredit.verification.verifiers import Verdict

Colour = Literal["auto", "always", "never"]

SHADE_CODES = (
    "",
    "\x1b[48;5;189;38;5;16m",
    "\x1b[48;5;147;38;5;16m",
    "\x1b[48;5;99;38;5;231m",
    "\x1b[48;5;57;38;5;231m",
)
"""From certain to undecided; of the palette that terminals with 256 colours share."""
_FAINT_CODE, _BOLD_CODE, _GREEN_CODE, _RED_CODE, _PLAIN_CODE = "\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[0m"
SHADE_ENTROPIES = (0.1, 0.4, 0.8, 1.5)
"""Entropies, in nats, from which on the next shade is used; a fair coin has 0.69."""

_END_LABEL = "end"
"""Stands for the token that ends a completion."""

_LABEL_WIDTH = 8
"""Columns of what stands before a row of numbers."""


def is_colour_wanted(choice: Colour) -> bool:
    """Whether to print colours: as requested, else on a terminal unless NO_COLOR is set."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


class TokenColumn(NamedTuple):
    """A token with its numbers, as printed."""

    token: str
    logprob: str
    entropy: str
    shade: float

    @property
    def width(self) -> int:
        """Width of the widest of the three."""
        return max(display_width(self.token), len(self.logprob), len(self.entropy))


class CompletionPrinter:
    """Printer of completions.

    Args:
        colour: Whether tokens are coloured by their entropy.
        columns: Width of the terminal in columns.

    """

    def __init__(self, colour: bool, columns: int) -> None:
        self.colour, self.columns = colour, columns

    def print_lines(self, *lines: str) -> None:
        """Print lines that this printer has rendered: their texts are escaped, and their styles are intended."""
        print(*lines, sep="\n", file=unwrap_stream(sys.stdout))

    def styled(self, text: str, style: str) -> str:
        """Return a text in a style, if colours are printed."""
        return f"{style}{text}{_PLAIN_CODE}" if self.colour and style else text

    def shaded(self, text: str, entropy: float) -> str:
        """Return a token in the colour of its entropy."""
        return self.styled(text, SHADE_CODES[sum(entropy >= step for step in SHADE_ENTROPIES)])

    @property
    def legend(self) -> str:
        """Explanation of the colours in one line; empty without colours."""
        if not self.colour:
            return ""
        shades = zip((0.0, *SHADE_ENTROPIES), ("0", *(f"{step:g}" for step in SHADE_ENTROPIES)), strict=True)
        return "entropy in nats from " + " ".join(self.shaded(f" {name} ", step) for step, name in shades)

    def render_title(self, title: str) -> str:
        """Return a heading in bold."""
        return f"{self.styled(title, _BOLD_CODE)}\n{self.styled('-' * min(self.columns, 72), _FAINT_CODE)}"

    def render_heading(self, number: int, completion: Completion) -> str:
        """Return number, verdict and cost of a completion, in one line."""
        tokens = len(completion.tokens)
        parts = [self.render_verdict(completion)] if completion.verdict else []
        cut = ", cut there" if completion.truncated else ""
        parts.append(f"{tokens} token{'s' * (tokens != 1)}{cut}")
        total, entropy = sum(completion.logprobs), sum(completion.entropy) / tokens
        parts.append(f"log-probability {total:.2f} ({total / tokens:.3f} per token), entropy {entropy:.3f} per token")
        return f"{self.styled(f'[{number}]', _BOLD_CODE)} {'; '.join(parts)}"

    def render_verdict(self, completion: Completion) -> str:
        """Return verdict, answer and reference."""
        assert completion.verdict is not None
        style = {Verdict.RIGHT: _GREEN_CODE, Verdict.WRONG: _RED_CODE}.get(completion.verdict, _FAINT_CODE)
        facts = [] if completion.answer is None else [f"answer {escape_controls(completion.answer)!s:.80}"]
        if completion.reference or not completion.turns:
            facts.append(f"reference {escape_controls(completion.reference or ''):.80}")
        if completion.turns:
            facts.append(f"reward {completion.reward:.3g} in {len(completion.turns)} turns")
        return f"{self.styled(completion.verdict.value, style + _BOLD_CODE)}: {', '.join(facts)}"

    def render_text(self, completion: Completion) -> str:
        """Return the text with every token in its colour; an episode turn by turn, with what was answered."""
        pairs = list(zip(completion.tokens, completion.entropy, strict=True))
        if not completion.turns:
            return self._render_tokens(pairs)
        lines = []
        for number, block in enumerate(completion.turns, start=1):
            part = pairs[block.start : block.end]
            entropy = sum(h for _, h in part) / len(part)
            reward = "" if block.reward is None else f"reward {block.reward:.3g}, "
            facts = f"{reward}entropy {entropy:.3f} per token"
            lines.append(f"{self.styled(f'turn {number}: ', _FAINT_CODE)}{self._render_tokens(part).rstrip()}")
            lines += [self.styled(f"  {line}", _FAINT_CODE) for line in (facts, *_quote_answer(block.answer))]
        return "\n".join(lines)

    def _render_tokens(self, pairs: Iterable[tuple[str, float]]) -> str:
        # A background must not run on over the end of a line.
        pieces = (
            "\n".join(self.shaded(part, h) if part else "" for part in escape_controls(t).split("\n")) for t, h in pairs
        )
        return "".join(pieces)

    def render_table(self, completion: Completion) -> Iterator[str]:
        """Yield lines with token, log-probability and entropy, one column per token, as many as fit on a line."""
        labels = [render_token(token) for token in completion.tokens]
        if not completion.tokens[-1] and not completion.truncated:
            labels[-1] = _END_LABEL
        facts = zip(labels, completion.logprobs, completion.entropy, strict=True)
        columns = [TokenColumn(token, _format_number(logprob), _format_number(h), h) for token, logprob, h in facts]
        for block in self._blocks(columns):
            yield self._row("token", (self._filled(cell.token, cell, cell.shade) for cell in block))
            yield self._row("log p", (self._filled(cell.logprob, cell) for cell in block))
            yield self._row("entropy", (self._filled(cell.entropy, cell) for cell in block))
            yield ""

    def _row(self, label: str, cells: Iterable[str]) -> str:
        return self.styled(f"{label:<{_LABEL_WIDTH}}", _FAINT_CODE) + " ".join(cells)

    def _filled(self, text: str, column: TokenColumn, shade: float = 0.0) -> str:
        return " " * (column.width - display_width(text)) + self.shaded(text, shade)

    def _blocks(self, columns: Iterable[TokenColumn]) -> Iterator[list[TokenColumn]]:
        block: list[TokenColumn] = []
        for column in columns:
            if block and _LABEL_WIDTH + sum(cell.width + 1 for cell in [*block, column]) > self.columns:
                yield block
                block = []
            block.append(column)
        yield block


def _quote_answer(answer: str) -> list[str]:
    """Return the lines of what an environment answered, marked as such."""
    return [f"| {line}" for line in escape_controls(answer).split("\n")] if answer else []


def _format_number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no minus before zero
