"""Lock a process with a kernel filter, so that it can only compute and answer."""

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence
from errno import EPERM

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SECCOMP_NUMBERS = {"x86_64": 317, "aarch64": 277}

TRANSFER_CALLS = {"read": (0, 63), "write": (1, 64)}
"""Allowed with one file. Numbers on x86_64 and on aarch64."""

MAP_CALLS = {"mmap": (9, 222), "mprotect": (10, 226)}
"""Allowed for memory that is not executable."""

COMPUTE_CALLS = {
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "setitimer": (38, 103),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
"""Allowed always."""

ALLOW_CALL, REFUSE_CALL, KILL_PROCESS = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000

_LOAD, _SKIP, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32  # offsets in struct seccomp_data
_EXECUTABLE = 4


class LateImportError(Exception):
    """A module is imported in the middle of an answer; a locked process cannot read it from disk.

    No ImportError: a library would take the module for missing, and go another way than it does elsewhere.
    """


def build_seccomp_filter(descriptor: int, machine: str) -> bytes:
    """Return the filter, 8 bytes per instruction: what is not allowed fails with EPERM; another architecture kills.

    Args:
        descriptor: Only file that may be read and written.
        machine: ``x86_64`` or ``aarch64``, both little-endian.

    """
    same_file = [_pack_instruction(_LOAD, _FIRST_ARGUMENT), _pack_instruction(_IF_EQUAL, descriptor, 0, 1)]
    not_executable = [_pack_instruction(_LOAD, _THIRD_ARGUMENT), _pack_instruction(_IF_ANY_BIT, _EXECUTABLE, 1, 0)]
    program = [
        _pack_instruction(_LOAD, _ARCHITECTURE),
        _pack_instruction(_IF_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0),
        _pack_instruction(_RETURN, KILL_PROCESS),
        _pack_instruction(_LOAD, _NUMBER),
    ]
    for calls, test in ((COMPUTE_CALLS, []), (TRANSFER_CALLS, same_file), (MAP_CALLS, not_executable)):
        program += _permit_calls([numbers[machine == "aarch64"] for numbers in calls.values()], test)
    return b"".join([*program, _pack_instruction(_RETURN, REFUSE_CALL)])


def _permit_calls(numbers: Sequence[int], test: Sequence[bytes]) -> list[bytes]:
    """Allow these calls if they pass the test, refuse them if not; go on with all others."""
    body = [*test, _pack_instruction(_RETURN, ALLOW_CALL), _pack_instruction(_RETURN, REFUSE_CALL)]
    count = len(numbers)
    jumps = [_pack_instruction(_IF_EQUAL, number, count - place, 0) for place, number in enumerate(numbers)]
    return [*jumps, _pack_instruction(_SKIP, len(body)), *body]


def _pack_instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


MAX_WORKER_BYTES = 3 * 2**30
"""Bytes of address space; importing sympy and reasoning-gym takes 0.7 GiB."""

PROCESS_LIMITS = {"AS": MAX_WORKER_BYTES, "CPU": 3600, "NOFILE": 0, "NPROC": 0, "FSIZE": 0, "CORE": 0}
"""Processor seconds of a locked process over its life; one that has used them is replaced like any that ends."""

_NO_NEW_PRIVILEGES, _SET_FILTER, _ALL_THREADS, _IS_KNOWN = 38, 1, 1, 2


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def can_lock_process() -> bool:
    """Whether this system can lock a process: Linux with seccomp, on x86_64 or aarch64."""
    number = SECCOMP_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or sys.byteorder != "little" or number is None:
        return False
    action = ctypes.c_uint32(REFUSE_CALL & 0xFFFF0000)
    return ctypes.CDLL(None).syscall(number, _IS_KNOWN, 0, ctypes.byref(action)) == 0


def keep_one_file(descriptor: int) -> None:
    """Close all files but one; standard input, output and error lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def lock_process(descriptor: int) -> None:
    """Lock this process for good: it keeps one open file, its memory and its clock.

    Whatever else it asks of the kernel fails with PermissionError.

    Args:
        descriptor: File that may still be read and written.

    Raises:
        OSError: if the kernel refuses to lock.

    """
    machine, kernel = platform.machine(), ctypes.CDLL(None, use_errno=True)
    keep_one_file(descriptor)
    for name, limit in PROCESS_LIMITS.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    instructions = build_seccomp_filter(descriptor, machine)
    program = _FilterProgram(len(instructions) // 8, instructions)
    failure = kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if failure or kernel.syscall(SECCOMP_NUMBERS[machine], _SET_FILTER, _ALL_THREADS, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "the kernel refused to lock the process of a verifier")
