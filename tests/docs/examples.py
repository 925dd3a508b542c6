"""The examples of a page as data, and what makes one of them an example of nothing."""

import itertools
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EFFECTS = Path(__file__).parent / "effects"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w.]+\.(?:yaml|py))\n")

DRAWING = ("CreditHeatmap", "TopTokens")
"""Probes that write pages and report no numbers."""

LEARNING = 10
"""Batches of training from which on rewards have to rise."""


def read_blocks(page):
    """Return the fenced blocks of a page, each with its language."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def list_commands(block):
    """Return each command of a block with the lines shown below it."""
    commands = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        commands.append((command, shown))
    return commands


def list_unused_blocks(page, language):
    """Return the blocks of a language that are no files which the page's own commands, or their settings, use."""
    blocks = read_blocks(page)
    commands = "".join(text for each, text in blocks if each == "console")
    settings = "".join(text for each, text in blocks if each == "yaml" and is_named_in(text, commands))
    return [text for each, text in blocks if each == language and not is_named_in(text, commands + settings)]


def is_named_in(block, text):
    """Whether a block is a file, by its first line, that a text names."""
    named = NAMED.match(block)
    return named is not None and Path(named[1]).stem in text


def list_sessions(page):
    """Return the interactive sessions of a page."""
    return [text for language, text in read_blocks(page) if language == "python" and text.startswith(">>>")]


def list_python_blocks(page):
    """Return the Python of a page that is no session."""
    return [text for text in list_unused_blocks(page, "python") if not text.startswith(">>>")]


def list_settings(page):
    """Return the settings of runs that a page shows."""
    texts = list_unused_blocks(page, "yaml")
    return [text for text in texts if re.search(r"^(trainer|model|data):", text, re.MULTILINE)]


def make_environment(folder):
    """Return an environment in which commands run as they are printed, and operators are recorded."""
    paths = os.pathsep.join(map(str, (EFFECTS, ROOT, ROOT / "scripts")))
    python = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": paths,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "RECORDED_EFFECTS": str(folder / "effects.jsonl"),
    }


def take_events(folder):
    """Return what has been recorded since the last call."""
    file = folder / "effects.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    file.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def find_idle_parts(events):
    """Return what had no effect in the batches of an example, in words.

    Args:
        events: What operators did, call by call.

    """
    faults = []
    for name, calls in itertools.groupby(sorted(events, key=lambda event: event["operator"]), lambda e: e["operator"]):
        if name.startswith("_"):  # of a command itself
            continue
        calls = list(calls)
        if calls[0]["writes"] and not any(call["changed"] for call in calls):
            faults.append(f"{name} changes nothing")
        if not calls[0]["writes"] and name not in DRAWING and not any(call["metrics"] for call in calls):
            faults.append(f"{name} reports nothing")
    if events and not any(event["credit"] for event in events):
        faults.append("no token has credit")
    if events and not any(event["spread"] for event in events):
        faults.append("rewards are equal in every group")
    rewards = [event["reward"] for event in events if event["operator"] == events[0]["operator"]]
    third = len(rewards) // 3
    if len(rewards) >= LEARNING and sum(rewards[-third:]) <= sum(rewards[:third]):
        faults.append("rewards do not rise")
    return faults
