"""What a person sees while a card is measured."""

import io
import re

import pytest

from rlcredit.cards.measuring_bar import MeasuringBar
from tests.terminal import draw_screen


class Terminal(io.StringIO):
    def isatty(self):
        return True


def measure_something(condition="GRPO"):
    with MeasuringBar("GTPO on aligned", 3) as bar:
        bar.begin_condition(condition)
        for part in ("completions of 4 prompts", "gradients of 4 prompts"):
            bar.begin_part(part)
        if bar.progress is not None:
            bar.progress.refresh()


def test_a_terminal_shows_the_part_under_way_and_keeps_two_lines(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    measure_something()
    plain = re.sub(r"\x1b\[\d+m", "", screen.getvalue())
    assert re.search(r"part +━+╸━+ 1/3 0:00:00 GRPO: gradients of 4 prompts", plain)
    left = draw_screen(screen.getvalue())
    assert left[0] == "measuring  GTPO on aligned"
    assert re.fullmatch(r"measured   GTPO on aligned \([\d.]+ s\)", left[-1])
    assert not any("gradients" in line for line in left)


def test_a_log_gets_a_line_before_and_a_line_after(capsys):
    measure_something()
    first, last = capsys.readouterr().err.splitlines()
    assert first == "measuring  GTPO on aligned"
    assert last.startswith("measured   GTPO on aligned (")


def test_what_fails_was_not_measured(capsys):
    with pytest.raises(ZeroDivisionError), MeasuringBar("GTPO on aligned", 1):
        raise ZeroDivisionError
    assert capsys.readouterr().err == "measuring  GTPO on aligned\n"
