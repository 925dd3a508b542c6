"""Which process is which, when one ends, and that one ends with its parent."""

import ctypes
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

RECORD = "RLCREDIT_PROCESS"
"""Environment variable: the file in which this process records its pid."""

PARENT = "RLCREDIT_PARENT"
"""Environment variable: the pid of the process that started it."""


def identify_machine() -> str:
    """Identify this machine since its last boot: a pid means nothing elsewhere or after a reboot."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text(encoding="utf-8").strip() if boot.is_file() else platform.node()


def read_start_time(pid: int) -> str | None:
    """Return when a process began, None if it does not run. A pid is reused; a pid with its start time is not."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip() or None


def kill_recorded_process(record: Path) -> None:
    """Kill the process that a file records, and its group, if it is of this machine and still lives."""
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
    """Return the pid of the process that has started this one, as the environment has it, and keep it from others."""
    return int(os.environ.pop(PARENT))


def end_with_parent(parent: int) -> None:
    """End this process when its parent does, of which it is told the pid."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which outlives exec
    if os.getppid() != parent:
        sys.exit("The campaign ended before this run began.")
