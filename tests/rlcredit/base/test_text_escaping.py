"""What a process writes does not steer the terminal that shows it."""

import errno
import io
import sys

import pytest

from rlcredit.base.text_escaping import (
    EscapingStream,
    SteadyStream,
    escape_controls,
    escape_markdown,
    guard_output,
    unwrap_stream,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("right\rwrong", r"right\rwrong"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\u2066a\u2069\u200b", r"\u2066a\u2069\u200b"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u2028b", r"a\u2028b"),
        ("\udcff", r"\udcff"),
        ("é 漢 ½ ✓ \n", "é 漢 ½ ✓ \n"),
    ],
)
def test_controls_are_shown_and_letters_stay(text, shown):
    assert escape_controls(text) == shown
    stream = io.StringIO()
    print(text, end="", file=EscapingStream(stream))
    assert stream.getvalue() == shown


def test_all_that_a_process_writes_is_harmless_but_for_what_draws(monkeypatch):
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    guard_output()
    guard_output()
    print("a\x1bb")
    sys.stderr.writelines(["c\x07"])
    print("\x1b[1m", file=unwrap_stream(sys.stdout))
    assert (out.getvalue(), err.getvalue()) == ("a\\x1bb\n\x1b[1m\n", "c\\x07")
    assert unwrap_stream(out) is out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("<!-- -->", "&lt;!-- -->"),
        ("![x](http://a)", r"![x]\(http://a)"),
        ("2 < 3, <0.001", "2 < 3, <0.001"),
    ],
)
def test_markdown_finds_no_html_and_no_link(text, shown):
    assert escape_markdown(text) == shown
    assert escape_markdown(shown) == shown


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO])
def test_what_is_written_to_a_terminal_that_was_closed_goes_nowhere(tmp_path, number):
    class Closed(io.TextIOWrapper):
        def flush(self):
            raise OSError(number, "closed")

    with (tmp_path / "terminal").open("wb") as file:
        stream = SteadyStream(Closed(file))
        stream.write("a line\n")
        stream.flush()


def test_other_errors_of_a_stream_are_raised(tmp_path):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        SteadyStream(Full()).write("a line")
