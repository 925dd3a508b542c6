"""``rlcredit list``: everything that a configuration can name, one line each."""

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlcredit.cli.command_options import make_list_parser
from rlcredit.config.paths import find_configs_folder
from rlcredit.credit.catalogue import find_operator_classes

OPERATOR_ROOMS = ("episode", "critics", "dense", "turns", "planning", "schedules", "signals", "tokens", "probes")
"""Rooms of operators, in the order of a stack."""

LISTED_FILES = {"conditions": "*/*.yaml", "models": "*.yaml", "tasks": "*.yaml", "campaigns": "*.yaml"}
"""Folders of configurations, and which files in them are meant."""

MAX_LINE_WIDTH = 120

Row = tuple[str, str]
"""A name and what it is."""


def run_list_command(args: list[str]) -> int:
    """Print the list, and return the exit status."""
    text = make_list_parser().parse_args(args).filter.lower()
    section_count = 0
    for title, rows in list_sections():
        matches = [row for row in rows if text in f"{title} {' '.join(row)}".lower()]
        if matches:
            print("\n".join([*([""] if section_count else []), *render_section(title, matches)]))
            section_count += 1
    if not section_count:
        print(f"nothing contains {text!r}; `rlcredit list` names everything.")
    return 0 if section_count else 1


def render_section(title: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield a title and its rows in two columns, cut to the width of a line."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    yield title
    for name, text in rows:
        summary = textwrap.shorten(text, max(20, MAX_LINE_WIDTH - width - 4), placeholder=" ..")
        yield f"  {name:<{width}}  {summary}".rstrip()


def list_sections() -> Iterator[tuple[str, list[Row]]]:
    """Yield every group with its title, in the order of a configuration."""
    from rlcredit import losses, tasks  # noqa: PLC0415

    for room in OPERATOR_ROOMS:
        operators = [cls for cls in find_operator_classes() if cls.__module__.split(".")[1] == room]
        kind = "probes" if room == "probes" else f"operators: {room}"
        yield f"{kind} (trainer.callbacks)", [_describe_class(cls) for cls in operators]
    packages = [("losses (model.loss)", losses, losses.PolicyLoss), ("tasks (data)", tasks, tasks.Task)]
    for title, package, base in packages:
        members = [getattr(package, name) for name in package.__all__]
        classes = [cls for cls in members if inspect.isclass(cls) and issubclass(cls, base) and cls is not base]
        yield title, [_describe_class(cls) for cls in classes]
    for folder, pattern in LISTED_FILES.items():
        files = sorted((find_configs_folder() / folder).glob(pattern))
        if files:
            yield f"{folder} (--config configs/{folder}/...)", [_describe_file(path, folder) for path in files]


def _describe_class(cls: type) -> Row:
    """Return the name of a class and one sentence about it, from its module's docstring if there is one."""
    module = inspect.getmodule(cls)
    text = inspect.getdoc(cls) or ""
    if module and module.__name__.startswith("callbacks.") and module.__doc__:
        text = module.__doc__.partition(": ")[2] or module.__doc__
    reward_note = " Binary rewards only." if getattr(cls, "rewards", "") == "binary" else ""
    return cls.__name__, " ".join(text.strip().split("\n\n")[0].split()) + reward_note


def _describe_file(path: Path, folder: str) -> Row:
    """Return the name of a configuration and the first line of its comment."""
    comment = path.read_text(encoding="utf-8").partition("\n")[0]
    text = comment.removeprefix("#").partition("  rlcredit ")[0].strip() if comment.startswith("#") else ""
    return path.relative_to(find_configs_folder() / folder).as_posix(), text
