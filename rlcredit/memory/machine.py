"""How much memory there is where a run will take place."""

import os

import torch


def read_machine_memory() -> int:
    """Return the bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def find_memory_share(device: torch.device, processes: int) -> tuple[int, str]:
    """Return the bytes that a process may take, and whose they are.

    Args:
        device: of the process.
        processes: that share this machine's memory.

    """
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return properties.total_memory, f"the {properties.name}"
    return (
        read_machine_memory() // processes,
        "this machine" if processes == 1 else f"each of {processes} processes of this machine",
    )
