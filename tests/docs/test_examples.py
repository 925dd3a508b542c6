"""Every example of the how-tos, the tutorial and the README has an effect: none shows credit of zero, or nothing."""

import doctest
import json
import re
import subprocess
import sys

import pytest

from tests.docs.examples import (
    EFFECTS,
    NAMED,
    ROOT,
    find_idle_parts,
    list_python_blocks,
    list_sessions,
    list_settings,
    make_environment,
    read_blocks,
    take_events,
)

PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
EVENT = {"operator": "A", "writes": True, "changed": True, "metrics": 1, "credit": True, "spread": True, "reward": 0.0}


def select_pages(list_examples):
    """Return the pages with examples of a kind; those that train a model in another trainer take their time."""
    chosen = [page for page in PAGES if list_examples(page)]
    slow = [
        "trainer.train()" in page.read_text(encoding="utf-8") and list_examples is list_python_blocks for page in chosen
    ]
    marks = [[pytest.mark.slow] if each else [] for each in slow]
    return [pytest.param(page, id=page.stem, marks=mark) for page, mark in zip(chosen, marks, strict=True)]


def run_command(folder, *arguments):
    """Run Python in a folder as the page's reader would, and return its output."""
    if not (folder / "configs").exists():
        (folder / "configs").symlink_to(ROOT / "configs")
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=make_environment(folder), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", select_pages(list_python_blocks))
def test_every_block_of_python_runs_as_printed_and_has_an_effect(page, tmp_path):
    (tmp_path / "blocks.json").write_text(json.dumps(list_python_blocks(page)), encoding="utf-8")
    run_command(tmp_path, EFFECTS / "run_blocks.py", "blocks.json")
    calls, ends = [], 0
    for event in take_events(tmp_path):
        if "operator" in event:
            calls.append(event)
            continue
        where = f"block {event['block']} of {page.name}"
        assert find_idle_parts(calls) == [], where
        assert calls or event["printed"] or event["files"], f"{where} leaves nothing"
        calls, ends = [], ends + 1
    assert ends == len(list_python_blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", select_pages(list_sessions))
def test_every_session_shows_what_it_does(page, tmp_path):
    for session in list_sessions(page):
        defined = "class " in session
        assert defined or any(line.want for line in doctest.DocTestParser().get_examples(session)), session
    run_command(tmp_path, "-m", "doctest", str(page))
    assert find_idle_parts(take_events(tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", select_pages(list_settings))
def test_every_file_of_settings_changes_a_run(page, tmp_path):
    for language, text in read_blocks(page):
        if language == "python" and (named := NAMED.match(text)):
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
    sessions = "".join(map(doctest.script_from_examples, list_sessions(page)))
    explain = ["-m", "rlcredit", "explain", "--config", str(ROOT / "configs" / "tiny.yaml")]
    for settings in list_settings(page):
        (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
        for module in {*re.findall(r"\b(my_\w+)\.[A-Z]", settings)}:
            if not (tmp_path / f"{module}.py").exists():
                (tmp_path / f"{module}.py").write_text(sessions, encoding="utf-8")
        assert any(
            run_command(tmp_path, *explain, *shown) != run_command(tmp_path, *explain, "--config=settings.yaml", *shown)
            for shown in ([], ["--show_prompt"])
        ), settings


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"changed": False}, "A changes nothing"),
        ({"credit": False}, "no token has credit"),
        ({"spread": False}, "rewards are equal in every group"),
        ({"writes": False, "metrics": 0}, "A reports nothing"),
    ],
)
def test_an_example_without_an_effect_is_found(changed, fault):
    assert find_idle_parts([EVENT, EVENT]) == find_idle_parts([]) == []
    assert find_idle_parts([EVENT | changed] * 3) == [fault]


def test_training_that_teaches_nothing_is_found():
    rewards = [0.4, 0.5, 0.4, 0.5, 0.6, 0.5, 0.7, 0.6, 0.8, 0.7]
    assert find_idle_parts([EVENT | {"reward": reward} for reward in rewards]) == []
    assert find_idle_parts([EVENT | {"reward": reward} for reward in reversed(rewards)]) == ["rewards do not rise"]
