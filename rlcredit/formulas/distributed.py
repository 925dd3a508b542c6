"""Statistics of the batch over all processes, or over one."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from rlcredit.formulas.masked import masked_sum


def has_other_processes() -> bool:
    """Whether there are other processes."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank_and_world_size() -> tuple[int, int]:
    """Return the number of this process and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if has_other_processes() else (0, 1)


def sum_over_processes(value: Tensor) -> Tensor:
    """Return the sum of ``value`` over all processes."""
    if has_other_processes():
        value = value.clone()
        dist.all_reduce(value)
    return value


def is_set_anywhere(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any process; every process must call it.

    Args:
        flag: Flag of this process.
        device: Device on which processes exchange tensors.

    """
    return bool(sum_over_processes(torch.tensor(int(flag), device=device))) if has_other_processes() else flag


def find_largest_number(number: int, device: torch.device) -> int:
    """Return the largest of the numbers of all processes; every process must call it.

    Args:
        number: Number of this process.
        device: Device on which processes exchange tensors.

    """
    if not has_other_processes():
        return number
    largest = torch.tensor(number, device=device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return int(largest)


def share_first_value(value: Any) -> Any:
    """Return the first value over the processes that is not None, or None; all must call it, and it is slow.

    Args:
        value: Value of this process; anything that can be pickled, or None.

    """
    if not has_other_processes():
        return value
    values_of_ranks: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values_of_ranks, value)
    return next((value for value in values_of_ranks if value is not None), None)


def pooled_mean_var(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and population variance over the true positions of all processes, float64; zeros if there are none.

    Args:
        values: Values, any shape.
        mask: Boolean mask, same shape.

    Example:
        >>> pooled_mean_var(torch.tensor([1.0, 3.0]), torch.tensor([True, True]))
        (tensor(2., dtype=torch.float64), tensor(1., dtype=torch.float64))

    """
    values = values.double()
    count = sum_over_processes(mask.sum()).clamp(min=1)
    mean = sum_over_processes(masked_sum(values, mask)) / count
    return mean, sum_over_processes(masked_sum((values - mean) ** 2, mask)) / count


def gather_over_processes(values: Tensor) -> tuple[Tensor, slice]:
    """Return the values of all processes in the order of their ranks, and the slice of this process.

    Args:
        values: Values of this process, shape ``(N, ...)``; N may differ between processes.

    """
    if not has_other_processes():
        return values, slice(None)
    counts = [torch.zeros(1, dtype=torch.long, device=values.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(values)], device=values.device))
    sizes, rank = [int(count) for count in counts], dist.get_rank()
    parts = [values.new_zeros(max(sizes), *values.shape[1:]) for _ in sizes]
    dist.all_gather(parts, torch.cat([values, values.new_zeros(max(sizes) - len(values), *values.shape[1:])]))
    start = sum(sizes[:rank])
    whole = torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
    return whole, slice(start, start + sizes[rank])
