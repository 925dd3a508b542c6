"""What tests wait for of other processes."""

import time
from collections.abc import Mapping
from typing import Any

from rlcredit.campaign.process_identity import read_start_time


def await_end(process: Mapping[str, Any]) -> None:
    """Wait until the system has ended a recorded process, which a loaded machine may take a while for."""
    limit = time.monotonic() + 30
    while read_start_time(process["pid"]) == process["started"]:
        assert time.monotonic() < limit, f"process {process['pid']} goes on"
        time.sleep(0.05)
