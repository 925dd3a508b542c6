"""The estimated memory of a run, compared with the memory available; a run that cannot fit is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from rlcredit.preflight.memory_estimate import VERDICTS, MemoryEstimate, MemoryParts
from rlcredit.preflight.policy import select_lora_layers
from rlcredit.preflight.step_memory import Holding, StepMemory, format_bytes
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule
from rlcredit.training.setup_checks import find_whole_reader, merges_adapter
from rlcredit.training.sharded_base import NAME, ShardedBaseStrategy

LIBRARIES = {"cpu": 540 * 2**20, "cuda": 2**30}
"""Bytes that Python, torch and what they load take before the model is read, as `scripts/measure_memory.py` finds them;
on a GPU its context and fragments, which have not been measured."""

MOST = 64
"""Most processes that are considered."""


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
                _count_held_out_prompts(each, holding.processes), each.choose_sampling(module.validation)
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
        if not used.quantization and not merges_adapter(self.module):
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
        asked = (each.size for each in self.task.held_out_sets)
        most = min(prompts, MOST, *(size for size in asked if size))
        numbers = range(2, most + 1) if used.processes == 1 else [used.processes]
        numbers = [number for number in numbers if prompts % number == 0 and prompts // number % minibatches == 0]
        ways = [self.estimate_parts(Holding(None, number, True)) for number in numbers]
        return min(ways, key=lambda way: VERDICTS.index(way.verdict), default=None)


def _count_held_out_prompts(asked: HeldOutSet, processes: int) -> int:
    """Return the number of held-out questions that a process answers together."""
    batch = asked.task.validation_batch
    return min(batch, -(-asked.size // processes)) if asked.size else batch


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
