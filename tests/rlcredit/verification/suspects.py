"""What a worker might be made to do; importable in the worker."""

import ctypes
import functools
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from errno import EPERM

from rlcredit.verification.worker_replies import Reply, pack_reply


def channel() -> int:
    """Return the file that a worker answers on, which it got as an argument."""
    return int(sys.argv[1])


def _thread():
    try:
        threading.Thread(target=print).start()
    except RuntimeError as error:  # "can't start new thread"
        raise PermissionError(EPERM, str(error)) from None


def _limit():
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    except ValueError as error:  # "not allowed to raise maximum limit"
        raise PermissionError(EPERM, str(error)) from None


def _kernel(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


FORBIDDEN = {
    "read a file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "write a file": lambda: os.open("pwned", os.O_CREAT | os.O_WRONLY),
    "list a folder": lambda: os.listdir("/"),
    "make a folder": lambda: os.mkdir("pwned"),
    "remove a file": lambda: os.unlink("pwned"),
    "look at a file": lambda: os.stat("/"),
    "open a socket": lambda: socket.socket(),
    "open a local socket": lambda: socket.socketpair(),
    "fork": os.fork,
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "start a thread": _thread,
    "stop the parent": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "ask for the parent": lambda: _kernel("kill", 1, 0),
    "trace": lambda: _kernel("ptrace", 0, 0, 0, 0),
    "raise a limit": _limit,
    "run its own machine code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "make a pipe": os.pipe,
    "copy a file descriptor": lambda: os.dup(channel()),
    "send a file descriptor": lambda: _kernel("sendmsg", channel(), None, 0),
    "say something": lambda: os.write(1, b"x"),
    "unlock itself": lambda: _kernel("prctl", 22, 0, 0),
}


def attempts():
    """Return what tries something forbidden and says with which error number it failed, 0 if it did not."""

    def attempt(name):
        try:
            FORBIDDEN[name]()
        except OSError as error:
            return float(error.errno)
        return 0.0

    return attempt


def sayings():
    """Return what says things that no worker says, and else the number it is given."""

    def say(what, number=0.0):
        os.write(channel(), b"" if what == "nothing" else what)
        return number

    return say


FORGED = {
    "an answer before it is asked": pack_reply(1, 0, Reply([1.0])),
    "two answers": 2 * pack_reply(1, 0, Reply([1.0])),
    "a part of an answer": b"\0",
    "a pickle that runs a shell": b"cos\nsystem\n(S'touch pwned'\ntR.",
    "ten kilobytes": bytes(10_000),
}


def deeds():
    """Return what obeys."""
    return lambda what, *arguments: {
        "answer": lambda number: number,
        "shrug": lambda: None,
        "die": lambda: os._exit(1),
        "sleep": lambda seconds: time.sleep(seconds) or 1.0,
        "compute": _compute,
        "grow": lambda: len(bytearray(4 * 2**30)) and 1.0,
        "secrets": lambda: float(sum(name in os.environ for name in ("HF_TOKEN", "HOME", "PATH", "AWS_SECRET"))),
    }[what](*arguments)


def _compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return 1.0


def stillborn():
    """Die before being ready."""
    os._exit(3)


def patient():
    """Return what takes long to answer, after it has said who it is."""
    return functools.partial(_compute, 60.0)
