"""Before a command starts: read and check its configuration."""

import sys
from collections.abc import Sequence
from typing import Any

from rlcredit.exits import REFUSED
from rlcredit.inputs.checks import read_checked_config


def read_configuration_or_exit(args: Sequence[str]) -> dict[str, Any]:
    """Return what files and flags configure, or exit with a message if that cannot be read."""
    try:
        return read_checked_config(args)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
