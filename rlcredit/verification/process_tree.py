"""Processes that a user's function has started: counted, and ended with it."""

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NoReturn

MOST_PROCESSES = 256
"""Processes that a function may have at a time."""

CROWD_FAULT = f"it has started more than {MOST_PROCESSES} processes"

WATCH_INTERVAL = 0.1
"""Seconds between two looks at a worker's processes."""

_DEATH_SIGNAL, _ADOPTER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def set_death_signal(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the system send this process a signal when the thread that started it ends.

    Args:
        parent: Number of the parent process; if it has ended before, so does this one.
        number: Signal.

    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, number)
        if os.getppid() != parent:
            os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of whatever is started below this process and loses its own, so that nothing gets away."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPTER, 1, 0, 0, 0)


def list_descendants(pid: int) -> list[int]:
    """Return the processes below one that have not ended; none where the system does not tell."""
    children = defaultdict[int, list[int]](list)
    for entry in os.listdir("/proc") if sys.platform == "linux" else ():
        if entry.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    children[int(parent)].append(int(entry))
    pids = list(children[pid])
    for child in pids:  # grows
        pids += children[child]
    return pids


def end_descendants(pid: int) -> None:
    """Kill everything below a process: stop all that is found, until nothing new is, and kill it then.

    What is stopped forks no more and keeps its place in the tree, so that nothing gets away between two looks.
    """
    assert pid > 1, "all that runs is below the first process"
    stopped_pids = set[int]()
    while new_pids := set(list_descendants(pid)) - stopped_pids - {os.getpid()}:
        for child in new_pids:
            _send_signal(child, signal.SIGSTOP)
        stopped_pids |= new_pids
    for child in stopped_pids:
        _send_signal(child, signal.SIGKILL)


def end_process_tree(pid: int) -> None:
    """Kill a process, the group that it leads, and everything below it; the group first, which is stopped at once."""
    assert pid > 1, "a group of the caller's, or of the first process"
    _send_signal(pid, signal.SIGSTOP, os.killpg)
    end_descendants(pid)
    _send_signal(pid, signal.SIGKILL, os.killpg)


def _send_signal(pid: int, number: int, send: Callable[[int, int], None] = os.kill) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, number)


def watch_worker(worker: int, control: socket.socket) -> NoReturn:
    """Watch a worker from its parent, and end with whatever it has started.

    That is so if the worker ends, if the trainer is gone or sends SIGTERM, and if the worker has too many processes,
    which is said on ``control``.

    Args:
        worker: Number of the worker, a child of this process that leads a group.
        control: Connection to the trainer, on which nothing comes any more but its end.

    """
    signal.signal(signal.SIGTERM, lambda *_: _end_watch(worker))
    _raise_priority()
    while not _has_ended(worker) and not select.select([control], (), (), WATCH_INTERVAL)[0]:
        if _stop_crowd(os.getpid(), worker, control):
            break
    _end_watch(worker)


def _has_ended(worker: int) -> bool:
    """Whether a child has ended; where the system can tell, it keeps its number, which is still that of its group."""
    if sys.platform == "linux":
        return os.waitid(os.P_PID, worker, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return os.waitpid(worker, os.WNOHANG) != (0, 0)


def _end_watch(worker: int) -> NoReturn:
    end_process_tree(worker)
    end_descendants(os.getpid())  # those that lost their parents
    os._exit(0)


def watch_parent(parent: int, control: socket.socket) -> NoReturn:
    """Watch the parent from its child while it imports a user's code, and end it if it has too many processes.

    Args:
        parent: Number of the parent, which leads a group.
        control: Connection to the trainer, on which that is said.

    """
    os.setsid()
    set_death_signal(parent)
    _raise_priority()
    while os.getppid() == parent:
        if _stop_crowd(parent, parent, control):
            end_process_tree(parent)
        time.sleep(WATCH_INTERVAL)
    os._exit(0)


def _stop_crowd(root: int, leader: int, control: socket.socket) -> bool:
    """Stop the group of a leader at once, and say so, if there are too many processes below a root."""
    if is_crowd := len(list_descendants(root)) > MOST_PROCESSES:
        _send_signal(leader, signal.SIGSTOP, os.killpg)
        control.send(CROWD_FAULT.encode())
    return is_crowd


def _raise_priority() -> None:
    """Run before others where the system allows it: what forks for ever leaves them little time."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
