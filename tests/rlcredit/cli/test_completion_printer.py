import re

import pytest

from rlcredit.cli.completion_printer import SHADE_CODES, CompletionPrinter, is_colour_wanted
from rlcredit.cli.sampled_completions import Completion
from rlcredit.verification.verifiers import Verdict

ANSWER = Completion(["4", "+3", "\n", "=7", ""], [-0.001, -1.234, -0.5, -2.0, 0.0], [0.0, 0.5, 0.2, 1.9, 0.0], False)


def plain(columns=100):
    return CompletionPrinter(colour=False, columns=columns)


def test_the_heading_says_verdict_length_and_means():
    ANSWER.verdict, ANSWER.answer, ANSWER.reference = Verdict.RIGHT, "7", "7"
    assert plain().render_heading(2, ANSWER) == (
        "[2] right: answer 7, reference 7; 5 tokens; log-probability -3.73 (-0.747 per token), entropy 0.520 per token"
    )
    cut = Completion(["x"], [-1.0], [1.0], True, None, "7", Verdict.WRONG)
    assert plain().render_heading(1, cut).startswith("[1] wrong: reference 7; 1 token, cut there;")


def test_the_table_has_a_column_for_every_token():
    assert list(plain().render_table(ANSWER)) == [
        "token      4    +3     ⏎    =7  end",
        "log p   0.00 -1.23 -0.50 -2.00 0.00",
        "entropy 0.00  0.50  0.20  1.90 0.00",
        "",
    ]


@pytest.mark.parametrize("columns", [14, 20, 30])
def test_the_table_is_no_wider_than_the_terminal(columns):
    lines = list(plain(columns).render_table(ANSWER))
    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("token") for line in lines) > 1
    assert "".join(line[8:] for line in lines if line.startswith("token")).split() == ["4", "+3", "⏎", "=7", "end"]


def test_without_colours_the_text_is_the_text():
    assert plain().render_text(ANSWER) == "4+3\n=7"
    assert plain().legend == ""


def test_with_colours_only_colours_are_added_and_none_runs_over_a_line_end():
    terminal = CompletionPrinter(colour=True, columns=100)
    text = terminal.render_text(ANSWER)
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == "4+3\n=7"
    assert f"{SHADE_CODES[2]}+3\x1b[0m\n{SHADE_CODES[4]}=7\x1b[0m" in text
    assert text.startswith("4")
    table = "\n".join(terminal.render_table(ANSWER))
    assert re.sub(r"\x1b\[[\d;]*m", "", table) == "\n".join(plain().render_table(ANSWER))


def test_a_completion_cannot_steer_the_terminal():
    evil = Completion(["\x1b[2J", "\x07", "a\u202eb"], [0.0] * 3, [0.0] * 3, True, "\x1b[0m", "1", Verdict.WRONG)
    written = [plain().render_heading(1, evil), plain().render_text(evil), *plain().render_table(evil)]
    assert not any(character in "".join(written) for character in "\x1b\x07\u202e")
    assert "\\x1b[2J\\x07a\\u202eb" in written


def test_colours_are_for_terminals_unless_one_asks(monkeypatch):
    assert [is_colour_wanted("auto"), is_colour_wanted("always"), is_colour_wanted("never")] == [False, True, False]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert is_colour_wanted("auto")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_colour_wanted("auto")
