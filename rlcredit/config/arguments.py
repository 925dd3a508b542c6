"""Parsers of commands without a configuration: errors of one line, and paths that a file system can have."""

import argparse
import difflib
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from rlcredit.base.files import find_special_kind
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.strict_yaml import shorten_name

ROOTS = ("condition", "seed_everything", "threads", "unsafe_scorers", "trainer", "model", "data", "checkpoint")
"""Options of a configuration that may follow those of a command."""

ALIKE = 0.8
"""From which similarity on an option is taken for a misspelt one."""

PART = 255
"""Bytes of a name inside a path that file systems take."""


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse, and refuse what is spelt nearly as one of its own options, before anything that is missing."""
        for word in sys.argv[1:] if args is None else args:
            option, _, value = word.partition("=") if word.startswith("--") else (word, "", word)
            if kind := find_special_kind(value):
                self.error(f"{shorten_name(value)} is {kind}, not a file. Name a file.")
            own = self._option_string_actions
            known = not option.startswith("--") or option in own or option[2:] in ROOTS or "." in option
            close = [] if known or self._abbreviates(option) else difflib.get_close_matches(option, own, 1, ALIKE)
            if close:
                self.error(f"{option}: no such option. Did you mean `{close[0]}`?")
        return super().parse_known_args(args, namespace)

    def _abbreviates(self, option: str) -> bool:
        return self.allow_abbrev and any(known.startswith(option) for known in self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Print the error in one line and exit with status 2."""
        print(f"error: {redact_passwords(message)}", file=sys.stderr)
        sys.exit(2)


def parse_path(text: str) -> Path:
    """Return a path that a file system can have."""
    if "\0" in text or any(len(os.fsencode(part)) > PART for part in Path(text).parts):
        raise argparse.ArgumentTypeError(f"{shorten_name(text)} is a name that no file can have.")
    return Path(text)
