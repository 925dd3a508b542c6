"""The child process of a run, which ends when the campaign that started it dies.

python -m rlcredit.campaign.child_process fit ...

"""

import json
import os
import runpy
from pathlib import Path

from rlcredit.campaign.process_identity import (
    PARENT_VARIABLE,
    RECORD_VARIABLE,
    end_with_parent,
    identify_machine,
    read_start_time,
    take_parent_pid,
)


def run_child_command() -> None:
    """Bind this process to its parent unless it is a fork, which is bound already, then execute the run."""
    if PARENT_VARIABLE in os.environ:
        end_with_parent(take_parent_pid())
    identity = {"pid": os.getpid(), "started": read_start_time(os.getpid()), "machine": identify_machine()}
    Path(os.environ.pop(RECORD_VARIABLE)).write_text(json.dumps(identity), encoding="utf-8")
    runpy.run_module("rlcredit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_child_command()
