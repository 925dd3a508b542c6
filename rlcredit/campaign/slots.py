"""Slots of a machine: how many runs execute at a time, and which cores and GPUs each may use."""

import os
from typing import Any

import torch
from lightning.pytorch.accelerators import CUDAAccelerator

from rlcredit.campaign.resolved_condition import ResolvedCondition
from rlcredit.campaign.run_process import GPU_VARIABLE


def count_usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_run_gpus(resolution: ResolvedCondition) -> int:
    """Return the number of GPUs that a run uses."""
    on_gpus = isinstance(resolution.trainer.accelerator, CUDAAccelerator)
    return count_devices(resolution.leaves["trainer"]["devices"]) if on_gpus else 0


def group_slot_gpus(resolution: ResolvedCondition) -> list[str]:
    """Return the GPUs of each slot, as the system names them; none if the runs use none."""
    per_run = count_run_gpus(resolution)
    if not per_run:
        return []
    visible = os.environ.get(GPU_VARIABLE)
    gpus = visible.split(",") if visible else [str(number) for number in range(torch.cuda.device_count())]
    if per_run > len(gpus):
        raise ValueError(f"trainer.devices asks for {per_run} GPUs a run, but there are {len(gpus)}. Lower it.")
    return [",".join(gpus[start : start + per_run]) for start in range(0, len(gpus) - per_run + 1, per_run)]


def count_devices(setting: Any) -> int:
    """Return the number of devices that a run uses; one if it would take all there are.

    Example:
        >>> count_devices("auto"), count_devices(2), count_devices([0, 1]), count_devices(-1)
        (1, 2, 2, 1)

    """
    if isinstance(setting, list):
        return len(setting)
    return max(1, setting) if isinstance(setting, int) else int(setting) if str(setting).isdigit() else 1


def make_slot_environments(
    gpus: list[str], slots: int | None, threads: int | None, available: int
) -> list[dict[str, str]]:
    """Return the environment variables of each slot.

    Args:
        gpus: GPUs of each slot; empty if runs use the processor only.
        slots: Runs at a time; as many as there are GPUs, or else cores, if None.
        threads: CPU threads per run; the cores divided among the slots if None.
        available: Number of cores.

    Example:
        >>> environments = make_slot_environments([], slots=None, threads=2, available=8)
        >>> environments[0], len(environments)
        ({'OMP_NUM_THREADS': '2'}, 4)
        >>> environments = make_slot_environments(["0", "1"], slots=3, threads=1, available=8)
        >>> [slot["CUDA_VISIBLE_DEVICES"] for slot in environments]
        ['0', '1', '0']

    """
    slots = slots or len(gpus) or max(1, available // (threads or 1))
    environment = {"OMP_NUM_THREADS": str(threads or max(1, available // slots))}
    return [{**environment, **({GPU_VARIABLE: gpus[slot % len(gpus)]} if gpus else {})} for slot in range(slots)]
