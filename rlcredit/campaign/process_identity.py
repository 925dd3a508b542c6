"""The identity of processes across reboots and machines, and how a process ends with its parent."""

import ctypes
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

RECORD_VARIABLE = "RLCREDIT_PROCESS"
"""Environment variable: the file in which this process records its pid."""

PARENT_VARIABLE = "RLCREDIT_PARENT"
"""Environment variable: the pid of the process that started it."""


def identify_machine() -> str:
    """Return an identifier of this machine since its last boot, without which a pid means nothing."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text(encoding="utf-8").strip() if boot.is_file() else platform.node()


def read_start_time(pid: int) -> str | None:
    """Return the start time of a process, None if it does not run; pids are reused, pairs of pid and time are not."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]
    listing = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return listing.stdout.strip() or None


def kill_recorded_process(record: Path) -> None:
    """Kill the process recorded in a file, and its group, if it belongs to this machine and is still alive."""
    try:
        process = json.loads(record.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return
    if process.get("machine") != identify_machine():
        return
    if process["started"] is not None and read_start_time(process["pid"]) == process["started"]:
        os.killpg(process["pid"], signal.SIGKILL)
        while read_start_time(process["pid"]) is not None:
            time.sleep(0.05)


def take_parent_pid() -> int:
    """Return the pid of the parent process from the environment, and remove it so that no child inherits it."""
    return int(os.environ.pop(PARENT_VARIABLE))


def end_with_parent(parent: int) -> None:
    """End this process when its parent, given by its pid, ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which outlives exec
    if os.getppid() != parent:
        sys.exit("The campaign ended before this run began.")
