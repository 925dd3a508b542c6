"""The commands that the documentation shows run, in order, say what it shows, and have an effect."""

import re
import subprocess

import pytest

from tests.docs.examples import (
    NAMED,
    ROOT,
    find_idle_parts,
    list_commands,
    make_environment,
    read_blocks,
    take_events,
)

DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```console" in page.read_text(encoding="utf-8")]
TRAINING = re.compile(r"^rlcredit (fit|campaign)\b(?!.*(status|\|\|))")
"""Commands that train, but for those that are shown with the error in which they end."""


def missing(shown, output):
    """Return the first line shown that the output lacks, in order; `...` stands for anything, also in a line."""
    lines = iter(output.splitlines())
    for line in shown:
        start = line.removesuffix("...").rstrip() if line.endswith("...") else None
        if line != "..." and not any(each.startswith(start) if start is not None else each == line for each in lines):
            return line
    return None


def test_a_line_that_is_not_there_is_found():
    assert missing(["a", "...", "loss 0.5 ..."], "a\nb\nloss 0.5 and more") is None
    assert missing(["a", "c"], "a\nb") == "c"
    assert missing(["b", "a"], "a\nb") == "a"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_commands_of_a_page_run_and_say_what_it_shows(page, tmp_path):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    environment = make_environment(tmp_path)
    for language, block in read_blocks(page):
        if named := NAMED.match(block):
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
        for command, shown in list_commands(block) if language == "console" else ():
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            line = missing(shown, done.stdout + done.stderr)
            assert line is None, f"{command}\ndoes not show\n{line}\nbut\n{done.stdout}{done.stderr}"
            events = take_events(tmp_path)
            assert events or not TRAINING.match(command), f"{command}\nassigns no credit"
            assert find_idle_parts(events) == [], command
