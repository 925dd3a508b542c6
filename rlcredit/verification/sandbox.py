"""A process that can compute and answer, and nothing else."""

import ctypes
import os
import platform
import resource
import sys

from rlcredit.verification.seccomp import REFUSE, SECCOMP, build_seccomp_filter

MEMORY = 3 * 2**30
"""Bytes of address space; importing sympy and reasoning-gym takes 0.7 GiB."""

LIMITS = {"AS": MEMORY, "CPU": 3600, "NOFILE": 0, "NPROC": 0, "FSIZE": 0, "CORE": 0}
"""Of a locked process, for life. One that has computed for an hour is replaced like any other that ends."""

_NO_NEW_PRIVILEGES, _SET_FILTER, _ALL_THREADS, _IS_KNOWN = 38, 1, 1, 2


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def can_lock_process() -> bool:
    """Whether this system can lock a process: Linux with seccomp, on x86_64 or aarch64."""
    number = SECCOMP.get(platform.machine())
    if sys.platform != "linux" or sys.byteorder != "little" or number is None:
        return False
    action = ctypes.c_uint32(REFUSE & 0xFFFF0000)
    return ctypes.CDLL(None).syscall(number, _IS_KNOWN, 0, ctypes.byref(action)) == 0


def lock_process(descriptor: int) -> None:
    """Leave this process one open file, its memory and its clock, for good.

    Whatever else it asks of the kernel fails with PermissionError. Standard input, output and error lead nowhere.

    Args:
        descriptor: the file that may still be read and written.

    Raises:
        OSError: if the kernel refuses to lock.

    """
    machine, kernel = platform.machine(), ctypes.CDLL(None, use_errno=True)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for name, limit in LIMITS.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    instructions = build_seccomp_filter(descriptor, machine)
    program = _FilterProgram(len(instructions) // 8, instructions)
    failed = kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if failed or kernel.syscall(SECCOMP[machine], _SET_FILTER, _ALL_THREADS, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "the kernel refused to lock the process of a verifier")
