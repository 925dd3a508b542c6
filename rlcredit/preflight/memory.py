"""The estimated memory of a run, compared with the memory available; a run that cannot fit is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from lightning.pytorch import Trainer

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.credit.stack_checks import select_operators
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.policy import memory
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.memory import find_memory_share
from rlcredit.policy.policy import Policy
from rlcredit.policy.policy_sizes import PolicySizes, find_policy_sizes
from rlcredit.preflight.policy import select_lora_layers
from rlcredit.preflight.step_memory import Holding, StepMemory, format_bytes
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule
from rlcredit.training.setup_checks import find_whole_reader
from rlcredit.training.sharded_base import NAME, ShardedBaseStrategy

LIBRARIES = {"cpu": 540 * 2**20, "cuda": 2**30}
"""Bytes that Python, torch and what they load take before the model is read, as `scripts/measure_memory.py` finds them;
on a GPU its context and fragments, which have not been measured."""

EASY = 0.5
"""Share of the memory below which a way to hold the weights fits with ease."""

VERDICTS = ("fits", "may not fit", "does not fit")
"""Whether a way to hold the weights fits: at its peak, without the batch, which can be made smaller, or not at all."""

MOST = 64
"""Most processes that are considered."""


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
    """Yield one line for each way to hold the weights: what it takes, whether it fits, and how to choose it."""
    order = sorted(ways, key=lambda way: (way[0].holding.is_sharded, way[0].holding.quantization is not None))
    widest = max(len(format_bytes(parts.peak)) for parts, _ in order)
    for parts, setting in order:
        taken = f"{format_bytes(parts.peak):>{widest}}"
        yield f"{_name_holding(parts.holding):<7}  at most {taken}, {parts.verdict:<12}  {setting}"


def _name_holding(holding: Holding) -> str:
    if holding.is_sharded:
        return "sharded"
    return f"{holding.quantization[0]}-bit" if holding.quantization else "whole"


def estimate_memory(
    trainer: Trainer, module: PolicyModule, task: Task, *, learns: bool = True
) -> MemoryEstimate | None:
    """Return the memory that a run needs on its machine; None if the sizes of its policy are unknown.

    Args:
        trainer: Trainer that has not begun.
        module: Module; it is not loaded.
        task: Task; it is not loaded.
        learns: Whether there will be updates.

    Raises:
        ValueError: an adapter for a layer that the policy does not have, or of a rank for which there is no memory.

    """
    known = find_policy_sizes(module.policy.location)
    if known is None:
        return None
    sharded = isinstance(trainer.strategy, ShardedBaseStrategy)
    used = Holding(module.policy.quantization, trainer.world_size, sharded)
    if known.architecture is None:
        return _estimate_from_weight_count(known, module.policy, used, trainer)
    machine = _Machine(trainer, module, task, known.architecture, learns)
    parts = machine.estimate_parts(used)
    others = tuple(machine.list_other_ways(used))
    fitting = [text for way, text in others if way.verdict != VERDICTS[-1] and way.frozen < parts.frozen]
    if not used.quantization and module.policy.dtype == "float32":
        halved = parts.held - parts.frozen / 2
        fitting[:0] = ["model.policy.dtype: bfloat16"] if halved + parts.libraries <= parts.room else []
    decodes = isinstance(module.engine, InProcessEngine) and not used.is_sharded
    return MemoryEstimate(parts, others, tuple(fitting), decodes)


@dataclass(frozen=True)
class _Machine:
    """A run and the machine that it is on."""

    trainer: Trainer
    module: PolicyModule
    task: Task
    architecture: DecoderArchitecture
    learns: bool

    def estimate_parts(self, holding: Holding) -> MemoryParts:
        """Return the memory of one process under a way to hold the weights."""
        shape, module, task, policy = self.architecture, self.module, self.task, self.module.policy
        mixed = "mixed" in str(self.trainer.precision)
        layers = select_lora_layers(policy, shape.adaptable_layers())
        trained = sum(policy.lora.rank * (layer.in_features + layer.out_features) for layer in layers.values())
        adapter = trained * (memory.TRAINED if self.learns else memory.BYTES["float32"])
        operators = select_operators(read_callbacks(self.trainer)) if self.learns else []
        device = self.trainer.strategy.root_device
        step = StepMemory(module, shape, holding, layers, mixed, operators, device.type)
        prompts = max(1, task.prompts_per_step // holding.processes)
        drawn = [
            step.estimate_decoding(
                _count_held_out_prompts(each.task, holding.processes), each.choose_sampling(module.validation)
            )
            for each in task.held_out_sets
        ]
        learnt, said_learnt = 0.0, "no update"
        if self.learns:
            drawn.append(step.estimate_decoding(prompts, module.sampling, trains=True))
            drawn += [each for each in [step.estimate_continuations(prompts)] if each]
            learnt, said_learnt = step.estimate_update(prompts)
        most, said_drawn = max(drawn)
        held = ""
        frozen = memory.weight_bytes(shape, policy.dtype, holding.quantization)
        if holding.is_sharded:
            frozen = memory.sharded_weight_bytes(shape, policy.dtype, holding.processes)
            held = f" in each of {holding.processes} processes, two layers whole at a time"
        said = (_describe_weights(policy, shape.parameters, frozen, held, trained, adapter), said_drawn, said_learnt)
        there, libraries = _find_room(device, holding.processes, self.trainer.num_nodes), _count_libraries(device)
        return MemoryParts(holding, frozen, adapter, most, learnt, libraries, *there, said)

    def list_other_ways(self, used: Holding) -> Iterator[tuple[MemoryParts, str]]:
        """Yield the ways to hold the weights that are not configured, each with the settings that choose it."""
        undo = "--trainer.strategy=ddp" if used.processes > 1 else "--trainer.strategy=auto"
        if used.quantization or used.is_sharded:
            whole = replace(used, quantization=None, is_sharded=False)
            yield self.estimate_parts(whole), undo if used.is_sharded else "--model.policy.quantization=null"
        if not used.quantization and not _merges_weights(self.module):
            few = replace(used, quantization="4bit", is_sharded=False)
            yield self.estimate_parts(few), f"model.policy.quantization: 4bit{f' with {undo}' * used.is_sharded}"
        if not used.is_sharded and (sharded := self._find_sharded(used)):
            devices = f" --trainer.devices={sharded.holding.processes}" if used.processes == 1 else ""
            plain = " --model.policy.quantization=null" if used.quantization else ""
            yield sharded, f"--trainer.strategy={NAME}{devices}{plain} with completions from a server"

    def _find_sharded(self, used: Holding) -> MemoryParts | None:
        """Return the memory with layers in parts, for as many processes as it takes; None if prompts are too few."""
        if find_whole_reader(self.module, read_callbacks(self.trainer)):
            return None
        prompts, minibatches = self.task.prompts_per_step, self.module.minibatches
        asked = (each.task.validation_size for each in self.task.held_out_sets)
        most = min(prompts, MOST, *(size for size in asked if size))
        numbers = range(2, most + 1) if used.processes == 1 else [used.processes]
        numbers = [number for number in numbers if prompts % number == 0 and prompts // number % minibatches == 0]
        ways = [self.estimate_parts(Holding(None, number, True)) for number in numbers]
        return min(ways, key=lambda way: VERDICTS.index(way.verdict), default=None)


def _count_held_out_prompts(task: Task, processes: int) -> int:
    """Return how many held-out questions a process answers together."""
    size = task.validation_size
    return min(task.validation_batch, -(-size // processes)) if size else task.validation_batch


def _merges_weights(module: PolicyModule) -> bool:
    """Whether the engine adds the adapter into the weights, which packed ones do not allow."""
    return isinstance(module.engine, InProcessEngine) and module.engine.merge


def _count_libraries(device: torch.device) -> int:
    """Return the bytes that Python, torch and what they load take."""
    return LIBRARIES.get(device.type, LIBRARIES["cuda"])


def _find_room(device: torch.device, processes: int, machines: int) -> tuple[int, str]:
    """Return the bytes that a process may use, and the device they are on."""
    return find_memory_share(device, -(-processes // machines) if device.type == "cpu" else 1)


def refuse_excess_memory(trainer: Trainer, module: PolicyModule, task: Task, *, learns: bool) -> MemoryEstimate | None:
    """Refuse a policy that is larger than the available memory; see :func:`estimate_memory`.

    Raises:
        ValueError: with what it takes and the repair.

    """
    found = estimate_memory(trainer, module, task, learns=learns)
    if found is not None and found.parts.least > found.room:
        how = " or ".join(dict.fromkeys("in parts" if NAME in each else "in fewer bits" for each in found.fitting))
        fewer = f"Hold the weights {how} ({' or '.join(found.fitting)}), or use"
        raise ValueError(
            f"model.policy.path: {shorten_name(module.policy.path)} takes at least {format_bytes(found.parts.least)} "
            f"({found.parts.said[0]}; libraries: {format_bytes(found.parts.libraries)}), and {found.parts.where} has "
            f"{format_bytes(found.room)}. "
            f"{fewer if found.fitting else 'Use'} a smaller model or a larger machine."
        )
    return found


def _estimate_from_weight_count(known: PolicySizes, policy: Policy, used: Holding, trainer: Trainer) -> MemoryEstimate:
    bits = memory.QUANTIZED[policy.quantization] if policy.quantization else memory.BYTES[policy.dtype]
    least = known.parameters * bits / (used.processes if used.is_sharded else 1)
    said = (
        f"{known.parameters:,} weights, at least {format_bytes(least)}; "
        "what its architecture takes otherwise is not known"
    )
    device = trainer.strategy.root_device
    there = _find_room(device, used.processes, trainer.num_nodes)
    parts = MemoryParts(used, least, 0.0, 0.0, 0.0, _count_libraries(device), *there, (said,))
    return MemoryEstimate(parts, (), (), decodes=True)


def _describe_weights(policy: Policy, parameters: int, frozen: float, where: str, trained: int, adapter: int) -> str:
    held = f"{policy.quantization} (the rest {policy.dtype})" if policy.quantization else policy.dtype
    kept = " with gradients and moments" if adapter == memory.TRAINED * trained else ""
    return (
        f"{parameters:,} weights in {held}: {format_bytes(frozen)}{where}; "
        f"{trained:,} of the adapter{kept}: {format_bytes(adapter)}"
    )
