"""The live table of runs, on standard output or on a terminal beside it."""

import contextlib
import io

from rlcredit.campaign.run_view import LiveRunTable, RunEventLines, open_run_view

ROW = ("grpo/seed0", "running", "5/10", "0.500", "0.457", "10 s")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


def test_a_table_is_drawn_on_the_terminal_while_events_go_where_standard_output_goes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    terminal, log = Terminal(), io.StringIO()
    with contextlib.redirect_stdout(log), open_run_view(lambda: [ROW], terminal) as view:
        view.print_event("begins     grpo/seed0")
        view.redraw()
        print("a line of the run")
    assert log.getvalue() == "begins     grpo/seed0\na line of the run\n"
    assert all(word in terminal.getvalue() for word in (*ROW, "held out", "eta"))
    assert "begins" not in terminal.getvalue()


def test_what_is_no_terminal_gets_lines_only():
    stream = io.StringIO()
    view = open_run_view(lambda: [ROW], stream)
    assert not isinstance(view, LiveRunTable)
    assert isinstance(view, RunEventLines)
    assert stream.getvalue() == ""
