"""A terminal for tests: a command runs on a pseudo-terminal, and its screen is what a person would see."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

STEPS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


def run_on_terminal(words, cwd, columns=140, **environment):
    """Run rlcredit on a pseudo-terminal; return its exit status and everything that the terminal received."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = {**os.environ, "TERM": "xterm", **environment}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
        settings.pop(name, None)
    command = [sys.executable, "-m", "rlcredit", *words]
    process = subprocess.Popen(command, cwd=cwd, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    received = b""
    try:
        while part := os.read(ours, 65536):
            received += part
    except OSError:
        pass  # the terminal is closed at the other end
    os.close(ours)
    return process.wait(), received.decode(errors="replace")


OWN_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("rlcredit", run_name="__main__", alter_sys=True)
"""


def run_until_terminal_closes(words, cwd, last):
    """Run rlcredit on a terminal of its own, close this once it shows a text, and return the exit status."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", OWN_TERMINAL, *words]
    with subprocess.Popen(
        command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        received = b""
        while last not in received.decode(errors="replace"):
            received += os.read(ours, 65536)
        os.close(ours)
        return process.wait()


def draw_screen(received):
    r"""Return the lines that are left on the screen.

    Example:
        >>> draw_screen("a\r\nb\x1b[1A\r\x1b[2Kc\n")
        ['c', 'b']

    """
    lines, row, column = [""], 0, 0
    for step in STEPS.finditer(received):
        text, number, order = step[0], step[1], step[2]
        if text == "\r":
            column = 0
        elif text == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif order == "A":
            row = max(0, row - int(number or 1))
        elif order == "K":
            lines[row] = "" if number == "2" else lines[row][:column]
        elif order is None:
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines if line.strip()]
