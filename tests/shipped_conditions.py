"""The shipped conditions as test cases: few that use every operator and loss together, and the others as slow ones."""

from pathlib import Path

import pytest

from rlcredit.config.strict_yaml import read_yaml

FOLDER = Path(__file__).parents[1] / "configs" / "conditions"
CONDITIONS = sorted(FOLDER.rglob("*.yaml"))


def _list_classes(path):
    """Return what a condition uses: its operators, its loss and the other settings of its training."""
    content = read_yaml(path)
    entries = content["trainer"]["callbacks"] or []
    model = content.get("model", {})
    used = [*entries, model.get("loss"), *(name for name in model if name != "loss")]
    return {str(entry.get("class_path") if isinstance(entry, dict) else entry).partition("(")[0] for entry in used}


def _choose_covering_conditions():
    """Return conditions that use every class of all of them, the one that adds most first."""
    classes = {path: _list_classes(path) for path in CONDITIONS}
    missing, chosen = set().union(*classes.values()), set()
    while missing:
        best = max(CONDITIONS, key=lambda path: len(classes[path] & missing))
        chosen.add(best)
        missing -= classes[best]
    return chosen


def _make_cases(fast):
    return [pytest.param(path, id=path.stem, marks=() if path in fast else pytest.mark.slow) for path in CONDITIONS]


CASES = _make_cases(_choose_covering_conditions())
GROUP_CASES = _make_cases({next(path for path in CONDITIONS if path.parent == folder) for folder in FOLDER.iterdir()})
"""The first condition of every group, and the others as slow cases."""
