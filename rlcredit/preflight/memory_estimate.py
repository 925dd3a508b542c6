"""What a run takes of its memory, part by part, whether it fits, and which other ways to hold the weights would."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rlcredit.preflight.step_memory import Holding, format_bytes

EASY = 0.5
"""Share of the memory below which a way to hold the weights fits with ease."""

VERDICTS = ("fits", "may not fit", "does not fit")
"""Whether a way to hold the weights fits: at its peak, without the batch, which can be made smaller, or not at all."""


class MemoryParts(NamedTuple):
    """Estimated memory of one process under one way to hold the frozen weights, in bytes.

    Args:
        holding: The way.
        frozen: Bytes of the frozen weights.
        adapter: Bytes of the adapter with its gradients and moments.
        decoding: Bytes taken on top of these while completions are drawn.
        update: Bytes taken on top of these while gradients are computed.
        libraries: Bytes that Python, torch and what they load take.
        room: Bytes that are free for the process.
        where: Owner of that memory, in words.
        said: One line for each of weights, decoding and update.

    """

    holding: Holding
    frozen: float
    adapter: float
    decoding: float
    update: float
    libraries: float
    room: int
    where: str
    said: tuple[str, ...]

    @property
    def held(self) -> float:
        """Bytes of the weights and the adapter, taken at all times."""
        return self.frozen + self.adapter

    @property
    def least(self) -> float:
        """Bytes that are taken however small a batch is."""
        return self.held + self.libraries

    @property
    def peak(self) -> float:
        """Largest number of bytes used at one time."""
        return self.least + max(self.decoding, self.update)

    @property
    def verdict(self) -> str:
        """Whether it fits, one of :data:`VERDICTS`."""
        fits, may_not, cannot = VERDICTS
        if self.peak <= self.room:
            return fits
        return may_not if self.least <= self.room else cannot


@dataclass(frozen=True)
class MemoryEstimate:
    """Estimated memory of one process, under the configured way to hold the frozen weights and under others.

    Args:
        parts: Memory under the configured way.
        others: Memory under other ways, with the settings of each.
        fitting: Settings that hold the weights in fewer bits, or in parts, and would fit.
        decodes: Whether completions are drawn in the process, rather than scored after another has drawn them.

    """

    parts: MemoryParts
    others: tuple[tuple[MemoryParts, str], ...]
    fitting: tuple[str, ...]
    decodes: bool

    @property
    def room(self) -> int:
        """Bytes that are free for the process."""
        return self.parts.room

    @property
    def peak_bytes(self) -> float:
        """Largest number of bytes used at one time."""
        return self.parts.peak

    def report_lines(self) -> Iterator[str]:
        """Yield the memory used, part by part, whether it fits, and which other ways to hold the weights would."""
        yield from self.parts.said
        there = f"{self.parts.where} has {format_bytes(self.room)}"
        libraries = format_bytes(self.parts.libraries)
        yield f"at most {format_bytes(self.peak_bytes)} at once, {libraries} of it for libraries; {there}"
        if self.peak_bytes > self.room:
            yield f"it may not fit: {self.advice}"
        ways = [(self.parts, "in use"), *self.others]
        if self.others and any(parts.peak > EASY * parts.room for parts, _ in ways):
            yield from _align_ways(ways)

    @property
    def advice(self) -> str:
        """How to reduce the peak."""
        if self.parts.update > self.parts.decoding:
            return "lower model.micro_batch_size (auto finds what fits on a GPU) or model.sampling.max_tokens."
        lowered = "model.engine.init_args.decode_batch_size" if self.decodes else "model.micro_batch_size"
        return f"lower {lowered} or max_tokens of model.sampling and model.validation."


def _align_ways(ways: list[tuple[MemoryParts, str]]) -> Iterator[str]:
    """Yield one line for each way to hold the weights: what a process takes of its share, and how to choose it."""
    order = sorted(ways, key=lambda way: (way[0].holding.is_sharded, way[0].holding.quantization is not None))
    taken = [format_bytes(parts.peak) for parts, _ in order]
    shares = [_describe_share(parts) for parts, _ in order]
    wide, wider = max(map(len, taken)), max(map(len, shares))
    for (parts, setting), peak, share in zip(order, taken, shares, strict=True):
        holding = _name_holding(parts.holding)
        yield f"{holding:<7}  at most {peak:>{wide}} of {share:<{wider}}  {parts.verdict:<12}  {setting}"


def _describe_share(parts: MemoryParts) -> str:
    """Return the bytes that a process may take."""
    processes = parts.holding.processes
    return format_bytes(parts.room) + (f" in each of {processes} processes" if processes > 1 else "")


def _name_holding(holding: Holding) -> str:
    if holding.is_sharded:
        return "sharded"
    return f"{holding.quantization[0]}-bit" if holding.quantization else "whole"
