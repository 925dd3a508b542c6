"""A run as a process that ends when the campaign that started it dies.

python -m rlcredit.campaign.child fit ...

"""

import json
import os
import runpy
from pathlib import Path

from rlcredit.campaign.pids import PARENT, RECORD, bound, machine, started, told_parent


def main() -> None:
    """Bind this process to its parent, unless it is a fork, which is bound, and become the run."""
    if PARENT in os.environ:
        bound(told_parent())
    own = {"pid": os.getpid(), "started": started(os.getpid()), "machine": machine()}
    Path(os.environ.pop(RECORD)).write_text(json.dumps(own), encoding="utf-8")
    runpy.run_module("rlcredit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
