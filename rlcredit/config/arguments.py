"""Parsers of commands: one style of help, errors of one line, and values that every command reads alike."""

import argparse
import difflib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rlcredit.base.exit_status import REFUSED
from rlcredit.base.files import find_special_kind
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.strict_yaml import shorten_name

CONFIG_KEYS = (
    "condition",
    "seed_everything",
    "threads",
    "unsafe_scorers",
    "trainer",
    "model",
    "data",
    "checkpoint",
)
"""Options of a configuration that may follow those of a command."""

LOOSE_OPTION = "{}: no such option. Options of `fit` may follow a --config."
"""Refusal of an option that only a configuration has, where none is named."""

FILE_OPTIONS = {".yaml": "--config", ".yml": "--config", ".json": "--tasks", ".jsonl": "--tasks", "/": "--ckpt_path"}
"""Option that names a file, by the file's ending, and a slash for a folder."""

_MIN_OPTION_SIMILARITY = 0.8
"""From which similarity on an option is taken for a misspelt one."""

_MAX_NAME_BYTES = 255
"""Bytes of a name inside a path that file systems take."""

MAX_HELP_WIDTH = 110
"""Columns of a help text on a terminal that has more."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """One column of options, one of what they are, and no line wider than is read with ease."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size((100, 24)).columns, MAX_HELP_WIDTH)
        super().__init__(prog, max_help_position=36, width=width)


class CommandParser(argparse.ArgumentParser):
    """Parser whose help has one style, and whose errors are one line with the repair.

    ``places`` holds the arguments without a name, in their order.

    Args:
        prog: Command, such as ``rlcredit card``.
        usage: What follows the options in the line of usage.
        description: Sentence that says what the command does.
        examples: Commands that show its use.

    """

    def __init__(self, prog: str, usage: str = "", description: str = "", examples: Sequence[str] = ()) -> None:
        self.places: list[argparse.Action] = []
        example_lines = "".join(f"\n  {example}" for example in examples)
        super().__init__(
            prog,
            usage=f"{prog} [options] {usage}".rstrip(),
            description=f"{description}\n{example_lines}" if example_lines else description,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        self._positionals.title = "arguments"

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Options by the words that name them."""
        return self._option_string_actions

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add an option or argument, and remember an argument that has no name."""
        action = super().add_argument(*names, **settings)
        self.places += [] if action.option_strings else [action]
        return action

    def format_help(self) -> str:
        """Return the help without blanks at the ends of its lines."""
        return re.sub(r" +$", "", super().format_help(), flags=re.MULTILINE)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse, and refuse what the command does not have, before anything that is missing."""
        for word in sys.argv[1:] if args is None else args:
            option = word.partition("=")[0]
            if option[:2] == "--" != option and option not in self.options:
                self._refuse_word(option, self.find_meant_option(option))
        result, extras = self.parse_known_args(args, namespace)
        if extras:
            self._refuse_word(extras[0], None)
        return result

    def _refuse_word(self, word: str, suggestion: str | None) -> NoReturn:
        kind = "option" if word.startswith("-") else "argument"
        advice = f"`{self.prog} --help` lists those that there are."
        if word.startswith("--") and word[2:].partition(".")[0] in CONFIG_KEYS and "." in word:
            advice = "It is one of a configuration. Write it into the file that you name."
        elif suggestion:
            advice = f"Did you mean `{suggestion}`?"
        elif word in FILE_OPTIONS.values() and self.places:
            advice = f"Name the file or folder alone, as `{self.prog} {self.places[0].metavar}`."
        elif kind == "argument" and (option := find_file_option(word)) in self.options:
            advice = f"Say `{option} {shorten_name(word)}`."
        self.error(f"{shorten_name(word)}: no such {kind}. {advice}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse, and refuse what is spelt nearly as one of its own options, before anything that is missing."""
        words = sys.argv[1:] if args is None else args
        if words and not self.places and not words[0].startswith("-"):
            self._refuse_word(words[0], None)
        for word in words:
            option, _, value = word.partition("=") if word.startswith("--") else (word, "", word)
            if kind := find_special_kind(value):
                self.error(f"{shorten_name(value)} is {kind}, not a file. Name a file.")
            is_known = (
                not option.startswith("--") or option in self.options or option[2:] in CONFIG_KEYS or "." in option
            )
            if suggestion := None if is_known else self.find_meant_option(option):
                self._refuse_word(option, suggestion)
        return super().parse_known_args(args, namespace)

    def find_meant_option(self, option: str) -> str | None:
        """Return the option whose name is begun, prolonged or spelt nearly so, or that alone takes what this one names.

        Example:
            >>> parser = CommandParser("rlcredit card")
            >>> add_out_option(parser, "folder for cards")
            >>> [parser.find_meant_option(name) for name in ("--folder", "--output_dir", "--outt", "--lora")]
            ['--out', '--out', '--out', None]

        """
        if near := find_similar_name(option, self._long_names):
            return near
        option_names = self._long_names
        thing = re.split("[-_]", option)[-1].lower()
        for describe in (_find_first_word, _show_metavar):
            matches = [name for name in option_names if thing in describe(self.options[name]).lower().split("|")]
            if len(matches) == 1:
                return matches[0]
        return None

    @property
    def _long_names(self) -> list[str]:
        return [name for name in self.options if len(name) > 3]

    def error(self, message: str) -> NoReturn:
        """Print the error in one line and exit with status 2."""
        print(f"error: {redact_passwords(self._word_error(message))}", file=sys.stderr)
        sys.exit(REFUSED)

    def _word_error(self, message: str) -> str:
        """Return a message of argparse with the option first and the repair last; any other as it is."""
        if match := re.fullmatch(r"the following arguments are required: (.*)", message):
            name = match[1].split(", ")[0]
            action = self._option_string_actions.get(name)
            usage = f"{name} {_show_metavar(action)}" if action else name
            return f"{match[1]}: missing. Say it, as `{self.prog} {usage}`."
        if not (match := re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL)):
            return message
        flag, problem = match[1], match[2]
        if re.fullmatch(r"expected (one|at least one) argument", problem):
            return (
                f"{flag}: its value is missing. Say it, as `{flag} {_show_metavar(self._option_string_actions[flag])}`."
            )
        if re.fullmatch(r"ignored explicit argument .*", problem):
            return f"{flag}: takes no value. Say `{flag}` alone."
        if details := re.fullmatch(r"invalid (int|float) value: (.*)", problem, re.DOTALL):
            return f"{flag}: expected a {'whole ' if details[1] == 'int' else ''}number, got {_cut_value(details[2])}."
        if details := re.fullmatch(r"invalid choice: ('.*?') \(choose from (.*)\)", problem, re.DOTALL):
            choices = [choice.strip("' ") for choice in details[2].split(",")]
            return f"{flag}: expected {join_alternatives(choices)}, got {_cut_value(details[1])}."
        return f"{flag}: {problem}"


def find_similar_name(option: str, names: Sequence[str]) -> str | None:
    """Return the name that an option begins, prolongs or misspells.

    Example:
        >>> [find_similar_name(option, ["--trainer", "--model"]) for option in ("--trainr", "--mod", "--x")]
        ['--trainer', '--model', None]

    """
    near = [name for name in names if len(option) > 3 and (name.startswith(option) or option.startswith(name))]
    near = near or difflib.get_close_matches(option, names, 1, _MIN_OPTION_SIMILARITY)
    return near[0] if near else None


def find_file_option(name: str) -> str:
    """Return the option that takes a file or folder of such a name; empty if none does.

    Example:
        >>> [find_file_option(name) for name in ("stack.yaml", "runs/grpo-seed0", "notes.txt", "word")]
        ['--config', '--ckpt_path', '', '']

    """
    return FILE_OPTIONS.get(Path(name).suffix or "/" * ("/" in name), "")


def _find_first_word(action: argparse.Action) -> str:
    return re.split(r"\W", action.help or "")[0]


def _show_metavar(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else None
    return metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())


def _cut_value(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]} .. {text[-15:]}"


def join_alternatives(names: Sequence[str]) -> str:
    """Return names as a list of alternatives.

    Example:
        >>> join_alternatives(["local", "ray"]), join_alternatives(["bash", "zsh", "fish"])
        ('local or ray', 'bash, zsh or fish')

    """
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def parse_path(text: str) -> Path:
    """Return a path that a file system can have."""
    if "\0" in text or any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in Path(text).parts):
        raise argparse.ArgumentTypeError(f"{shorten_name(text)} is a name that no file can have.")
    return Path(text)


def add_out_option(
    group: argparse._ActionsContainer, what: str, default: Path | None = None, *, required: bool = False
) -> None:
    """Add the option that names the folder for what a command writes.

    Args:
        group: Parser or group of it.
        what: What the folder is for.
        default: Folder, unless one is named.
        required: Whether one has to be named.

    """
    description = f"{what} (default: {default})" if default else what
    group.add_argument("--out", type=parse_path, default=default, metavar="FOLDER", help=description, required=required)


def make_count_parser(minimum: int = 1, maximum: int | None = None) -> Callable[[str], int]:
    """Return a function that reads a whole number within limits.

    Args:
        minimum: Smallest number that it takes.
        maximum: Largest number that it takes; none if None.

    Example:
        >>> make_count_parser()("12")
        12

    """

    def parse_count(text: str) -> int:
        if (
            not text.isascii()
            or not text.isdigit()
            or int(text) < minimum
            or (maximum is not None and int(text) > maximum)
        ):
            limits = f"from {minimum} on" if maximum is None else f"from {minimum} to {maximum}"
            raise argparse.ArgumentTypeError(f"expected a number {limits}, got {_cut_value(repr(text))}.")
        return int(text)

    return parse_count
