"""The parser of the command line, whose errors are sentences."""

import sys
import typing
from typing import NoReturn

from lightning.pytorch.cli import LightningArgumentParser

from rlcredit.cli.config_faults import explain_failures
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.reader import Configuration, Roots

_MAX_MESSAGE = 1800
"""Characters of a message; the list of all operators has about a thousand."""

_MAX_FAULTS = 5
"""Faults of one configuration that are told at once."""


class ReadableParser(LightningArgumentParser):
    """Parser that prints an error as one message, without the usage text."""

    roots: typing.ClassVar[Roots] = {}
    configuration: typing.ClassVar[Configuration] = Configuration()

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the faults of the configuration and their repairs, and exit with status 2."""
        self.refuse(*explain_failures(message, self.configuration, self.roots)[:_MAX_FAULTS])

    def refuse(self, *sentences: str) -> NoReturn:
        """Print finished sentences, each behind the place that it is about, and exit with status 2."""
        for sentence in sentences:
            print(f"error: {_join_lines(redact_passwords(self.configuration.locate(sentence)))}", file=sys.stderr)
        sys.exit(2)


def _join_lines(text: str) -> str:
    """Join the lines of a message, and cut out the middle of a long one."""
    line = " ".join(text.split("\n"))
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE // 2]} .. {line[-_MAX_MESSAGE // 4 :]}"
