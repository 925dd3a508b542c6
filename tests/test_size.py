"""Rooms do not grow unnoticed: every one has a budget, which falls freely and rises only with a reason."""

import re
from collections import Counter
from pathlib import Path

LINE_BUDGETS = {
    "rlcredit": 232,  # `__init__` and `__main__`
    "rlcredit/base": 1142,  # files, exit statuses, messages, the style of pictures
    "rlcredit/bridge": 1434,  # the stacks in other trainers
    "rlcredit/campaign": 3690,  # declared sets of runs, started and resumed
    "rlcredit/cards": 4154,  # report cards of operators
    "rlcredit/cli": 4048,  # the command line
    "rlcredit/config": 2552,  # what people write, read and checked
    "rlcredit/credit": 2992,  # the rollout, the operator, the checks of a stack
    "rlcredit/decoding": 2786,  # engines that answer prompts
    "rlcredit/episodes": 1369,  # environments that answer a policy turn by turn
    "rlcredit/evaluation": 1745,  # policies compared on held-out questions
    "rlcredit/formulas": 2871,  # pure formulas on tensors
    "rlcredit/losses": 1086,  # credit and ratios to a scalar
    "rlcredit/oracle": 1024,  # the policy's own estimate of a prefix's value
    "rlcredit/outputs": 1029,  # files that a run leaves
    "rlcredit/pages": 701,  # tables, formats and layout of pages
    "rlcredit/policy": 3011,  # the language model and its adapter
    "rlcredit/preflight": 1496,  # checks before weights are read
    "rlcredit/record": 1440,  # the record of a run, and MLflow
    "rlcredit/report": 2163,  # reports of campaigns
    "rlcredit/run_folder": 452,  # the folder of a run
    "rlcredit/statistics": 1573,  # statistics on plain numbers
    "rlcredit/supervision": 872,  # what watches a run
    "rlcredit/tasks": 3239,  # questions and answers
    "rlcredit/training": 3822,  # the training step
    "rlcredit/verification": 6796,  # judges of answers, in processes of their own
    "callbacks": 6353,  # operators and probes
    "scripts": 2986,  # what developers of rlcredit run
    "tests": 1134,  # fixtures and helpers that several folders share
    "tests/batteries": 3307,  # fuzzers, injected faults, the soak
    "tests/behaviour": 2582,  # whole runs
    "tests/callbacks": 6194,  # one file for each operator and probe
    "tests/contracts": 3273,  # what holds for all operators, names, pages
    "tests/docs": 495,  # commands and sentences of the pages
    "tests/rlcredit": 34661,  # mirror of `rlcredit`
    "tests/scripts": 456,  # mirror of `scripts`
}
"""Lines of Python in every room, set by ``python tests/test_size.py``; a commit that raises one says why."""

FILE_BUDGET = 564
"""Python files of the product: rlcredit, callbacks and scripts."""

WORD_BUDGET = 60799
"""Words of the pages in docs."""

ROOT = Path(__file__).parents[1]
CODE_FOLDERS = ("rlcredit", "callbacks", "scripts", "tests")
DEEP_FOLDERS = ("rlcredit", "tests")
"""Folders whose subfolders are rooms of their own."""


def list_code(*folders):
    return [path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def count_lines():
    """Count the lines of every room."""
    sizes = Counter()
    for path in list_code(*CODE_FOLDERS):
        depth = 2 if path.parts[0] in DEEP_FOLDERS and len(path.parts) > 2 else 1
        sizes["/".join(path.parts[:depth])] += len((ROOT / path).read_text(encoding="utf-8").splitlines())
    return sizes


def count_files():
    return len(list_code("rlcredit", "callbacks", "scripts"))


def count_words():
    pages = [
        path for path in (ROOT / "docs").rglob("*.md") if not path.relative_to(ROOT / "docs").parts[0].startswith("_")
    ]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def find_excess(sizes, budgets):
    """Return one sentence for every room that is larger than its budget, with the repair."""
    return [
        f"{room} has {size:,} and may have {budgets.get(room, 0):,}: {size - budgets.get(room, 0):,} too many. "
        "Delete as many, or raise its budget in tests/test_size.py and give the reason in the same commit."
        for room, size in sizes.items()
        if size > budgets.get(room, 0)
    ]


def test_no_room_is_larger_than_its_budget():
    sizes = count_lines()
    assert sizes["rlcredit/credit"] > 1000
    excess = find_excess(sizes, LINE_BUDGETS)
    assert not excess, "\n".join(excess)


def test_no_budget_is_left_for_a_room_that_is_gone():
    assert LINE_BUDGETS.keys() <= count_lines().keys()


def test_neither_files_nor_pages_grow_unnoticed():
    sizes = {"the product, in files,": count_files(), "docs, in words,": count_words()}
    excess = find_excess(sizes, dict(zip(sizes, (FILE_BUDGET, WORD_BUDGET), strict=True)))
    assert not excess, "\n".join(excess)


def test_what_is_too_large_is_named_with_its_excess_and_the_repair():
    [sentence] = find_excess({"callbacks": 5400, "scripts": 10}, {"callbacks": 5361, "scripts": 10})
    assert sentence.startswith("callbacks has 5,400 and may have 5,361: 39 too many. Delete as many, or raise")
    assert find_excess({"rlcredit/new": 1}, {})


def write_budgets(source):
    """Return this module with today's sizes as budgets; a room without a line is added by hand."""
    sizes = count_lines()
    source = re.sub(r'"(\S+)": [\d_]+,  #', lambda line: f'"{line[1]}": {sizes[line[1]]},  #', source)
    source = re.sub(r"^FILE_BUDGET = .*", f"FILE_BUDGET = {count_files()}", source, flags=re.MULTILINE)
    return re.sub(r"^WORD_BUDGET = .*", f"WORD_BUDGET = {count_words()}", source, flags=re.MULTILINE)


if __name__ == "__main__":
    Path(__file__).write_text(write_budgets(Path(__file__).read_text(encoding="utf-8")), encoding="utf-8")
