"""What benchmarks share: alternating rounds, medians with their spread, a table, and a file of all values."""

import argparse
import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from rlcredit.training.step_state import read_clock

CPU_DEVICE = torch.device("cpu")


def make_benchmark_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file that gets all values as JSON")
    return parser


def measure_in_turns(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measure all sides in turn, round after round, so that other load on the machine affects all of them alike."""
    values: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            values[name].append(measure())
    return values


def round_ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return ours over theirs, round by round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def format_median_and_range(values: Sequence[float], digits: int = 3) -> str:
    """Return median, smallest and largest value.

    Example:
        >>> format_median_and_range([1.0, 3.0, 2.0], digits=1)
        '2.0 (1.0 to 3.0)'

    """
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low} to {high})"


def print_columns(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows of the same keys, columns side by side."""
    names = list(rows[0])
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def measure_peak_rate(size: int = 1024, device: torch.device = CPU_DEVICE, dtype: torch.dtype = torch.float32) -> float:
    """Return the operations a second of a product of two square matrices, the best of some."""
    factors = [torch.randn(size, size, device=device).to(dtype) for _ in range(2)]
    return 2 * size**3 / find_least_time(lambda: torch.mm(*factors), device)


def find_least_time(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the fastest of eight calls, the work of an accelerator included."""
    seconds = []
    for _ in range(8):
        start = read_clock(device)
        work()
        seconds.append(read_clock(device) - start)
    return min(seconds)


def take_peak_bytes() -> int:
    """Return the largest number of bytes allocated on the accelerator since the last call; zero without one."""
    if not torch.cuda.is_available():
        return 0
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return peak


def write_measurements(file: Path | None, **values: Any) -> None:
    """Write values and a description of the machine."""
    if file is None:
        return
    machine = {
        "processor": _read_processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine, **values}, indent=1) + "\n")


def _read_processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
