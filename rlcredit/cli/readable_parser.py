"""The parser of the command line, whose errors are sentences."""

import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from lightning.pytorch.cli import LightningArgumentParser

from rlcredit.cli.config_schema import Roots
from rlcredit.cli.parser_errors import explain_parser_error
from rlcredit.config.jsonargparse_patches import list_options
from rlcredit.config.passwords import redact_passwords
from rlcredit.tasks.record_sources import FILE_READERS

LONGEST = 1800
"""Characters of a message; the list of all operators has about a thousand."""


class ReadableParser(LightningArgumentParser):
    """Parser that prints an error as one message, without the usage text."""

    roots: typing.ClassVar[Roots] = {}
    given: typing.ClassVar[dict[str, Any]] = {}  # read before parsing: while it parses, the working directory changes

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the error and its repair, and exit with status 2."""
        options = list(list_options(self))
        correction = _explain_table_as_task(self.given)
        self.refuse(correction or explain_parser_error(message, self.given, self.roots, options))

    def refuse(self, sentence: str) -> NoReturn:
        """Print a finished sentence, and exit with status 2."""
        print(f"error: {_join_lines(redact_passwords(sentence))}", file=sys.stderr)
        sys.exit(2)


def _join_lines(text: str) -> str:
    """Join the lines of a message, and cut out the middle of a long one."""
    line = " ".join(text.split("\n"))
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} .. {line[-LONGEST // 4 :]}"


def _explain_table_as_task(config: Mapping[str, Any]) -> str | None:
    """Explain how to name a data file that was given as the task itself."""
    data = config.get("data")
    if isinstance(data, str) and Path(data).suffix.lower() in FILE_READERS:
        return f"data: {data} is a table, no task. Say --data Records --data.init_args.path {data}"
    return None
