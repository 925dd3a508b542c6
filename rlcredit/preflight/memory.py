"""The estimated memory of a run, compared with the memory available; a run that cannot fit is refused."""

from collections.abc import Iterator
from dataclasses import dataclass

from lightning.pytorch import Trainer

from rlcredit.config.strict_yaml import shorten_name
from rlcredit.decoding.fused_forward import KNOWN
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy import memory
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.memory import find_memory_share
from rlcredit.policy.model_loading import Quantization
from rlcredit.policy.policy import Policy
from rlcredit.policy.policy_sizes import PolicySizes, find_policy_sizes
from rlcredit.preflight.policy import select_lora_layers
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule
from rlcredit.training.sharded_base import ShardedBaseStrategy

PROMPT = 512
"""Tokens that a prompt is assumed to have; how many it has is known when the questions have been read."""


def estimate_decoding_memory(
    module: PolicyModule, architecture: DecoderArchitecture, prompts: int, sampling: Sampling, mixed: bool
) -> tuple[float, str]:
    """Return the bytes used while completions are sampled, and a line about them.

    Args:
        module: Module; it is not loaded.
        architecture: Architecture of the module's policy.
        prompts: Number of prompts answered together.
        sampling: How completions are drawn.
        mixed: Whether the trainer computes in fewer bits than its weights have.

    """
    engine, policy, rows = module.engine, module.policy, prompts * sampling.completions
    if not isinstance(engine, InProcessEngine):
        return 0.0, f"decoding by {type(engine).__name__}, whose memory is its own"
    rows = min(engine.decode_batch_size or rows, rows)
    fused = engine.fused and not mixed and not policy.quantization and architecture.kind in KNOWN
    merged = 4 * architecture.linear_parameters if policy.dtype == "float32" and (fused or engine.merge) else 0
    cache = memory.cache_bytes(architecture, policy.dtype, rows, PROMPT + sampling.max_tokens)
    other = memory.DRAWING * rows * architecture.vocabulary
    other += memory.prefill_bytes(architecture, policy.dtype, -(-rows // sampling.completions), PROMPT)
    copies = f", weights merged with the adapter {format_bytes(merged)}" if merged else ""
    return merged + cache + other, (
        f"decoding {rows} completions at a time, {PROMPT} (assumed) + {sampling.max_tokens} tokens: keys and values "
        f"{format_bytes(cache)}{copies}, the rest {format_bytes(other)}"
    )


def estimate_update_memory(
    module: PolicyModule, architecture: DecoderArchitecture, prompts: int, ranks: int, mixed: bool
) -> tuple[float, str]:
    """Return the bytes used while a gradient is computed, and a line about them.

    Args:
        module: Module; it is not loaded.
        architecture: Architecture of the module's policy.
        prompts: Number of prompts in a step, in one process.
        ranks: Sum of the ranks of all adapters in a layer.
        mixed: Whether the trainer computes in fewer bits than its weights have.

    """
    policy, micro, longest = module.policy, module.micro_batches.size, PROMPT + module.sampling.max_tokens
    prompts = max(1, prompts // module.minibatches)
    rows = prompts * module.sampling.completions
    tokens = rows * module.sampling.max_tokens + prompts * PROMPT
    part = rows if micro is None else 1 if isinstance(micro, str) else micro
    if part < rows:
        rows, tokens = part, part * longest
    kept = memory.activation_bytes(architecture, policy.dtype, tokens=tokens, keys=longest, ranks=ranks, mixed=mixed)
    kept += 2 * architecture.linear_parameters if mixed and policy.dtype == "float32" and not policy.quantization else 0
    logits = memory.logit_bytes(architecture, tokens)
    least = "at least " if micro == "auto" else ""
    return kept + logits, (
        f"update, {least}{rows} completion{'s'[: rows > 1]} at a time: activations {format_bytes(kept)}, "
        f"logits {format_bytes(logits)}"
    )


def format_bytes(number: float) -> str:
    """Format a number of bytes for people.

    Example:
        >>> format_bytes(690304), format_bytes(61.1e9)
        ('0.7 MiB', '56.9 GiB')

    """
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / 2**20:,.1f} MiB"


LIBRARIES = 2**30
"""Bytes that Python, torch and what they load take, about; on a GPU its context and fragments."""

FEWER: dict[str, Quantization | None] = {
    "model.policy.dtype: bfloat16": None,
    "model.policy.quantization: 4bit": "4bit",
}
"""Settings that hold weights in fewer bits than float32."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Estimated memory of one process in bytes, with its description.

    Args:
        policy: Bytes of the weights and the adapter, taken at all times.
        decoding: Bytes taken on top of these while completions are drawn.
        update: Bytes taken on top of these while gradients are computed.
        room: Bytes that are free for the process.
        where: Owner of that memory, in words.
        said: One line for each of the first three.
        fitting: Settings that hold the weights in fewer bits and would fit.

    """

    policy: float
    decoding: float
    update: float
    room: int
    where: str
    said: tuple[str, ...]
    fitting: tuple[str, ...]

    @property
    def peak_bytes(self) -> float:
        """Largest number of bytes used at one time."""
        return self.policy + max(self.decoding, self.update) + LIBRARIES

    def report_lines(self) -> Iterator[str]:
        """Yield the memory used, part by part, and whether it fits."""
        yield from self.said
        there = f"{self.where} has {format_bytes(self.room)}"
        yield f"at most {format_bytes(self.peak_bytes)} at once, {format_bytes(LIBRARIES)} of it for libraries; {there}"
        if self.peak_bytes > self.room:
            yield f"it may not fit: {self.advice}"

    @property
    def advice(self) -> str:
        """How to reduce the peak."""
        if self.update > self.decoding:
            return "lower model.micro_batch_size (auto finds what fits on a GPU) or model.sampling.max_tokens."
        return "lower model.engine.init_args.decode_batch_size or max_tokens of model.sampling and model.validation."


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
    device, processes = trainer.strategy.root_device, trainer.world_size
    there = find_memory_share(device, processes if device.type == "cpu" else 1)
    if known.architecture is None:
        return _estimate_from_weight_count(known, module, there)
    shape, policy, mixed = known.architecture, module.policy, "mixed" in str(trainer.precision)
    layers = select_lora_layers(policy, shape.linear_layers())
    trained = sum(policy.lora.rank * (layer.in_features + layer.out_features) for layer in layers.values())
    adapter = trained * (memory.TRAINED if learns else memory.BYTES["float32"])
    prompts = max(1, task.prompts_per_step // processes)
    answered = [(each.task.validation_batch, each.choose_sampling(module.validation)) for each in task.held_out_sets]
    answered += [(prompts, module.sampling)] if learns else []
    drawn, said_drawn = max(estimate_decoding_memory(module, shape, number, how, mixed) for number, how in answered)
    ranks = policy.lora.rank * round(len(layers) / shape.layers)
    learnt, said_learnt = estimate_update_memory(module, shape, prompts, ranks, mixed) if learns else (0.0, "no update")
    sharded = isinstance(trainer.strategy, ShardedBaseStrategy)
    frozen = (
        memory.sharded_weight_bytes(shape, policy.dtype, processes)
        if sharded
        else memory.weight_bytes(shape, policy.dtype, policy.quantization)
    )
    held = f" in each of {processes} processes, two layers whole at a time" if sharded else ""
    said = (_describe_weights(policy, known.parameters, frozen, held, trained, adapter), said_drawn, said_learnt)
    fitting = tuple(
        key for key, bits in FEWER.items() if memory.weight_bytes(shape, "bfloat16", bits) + adapter <= there[0]
    )
    return MemoryEstimate(frozen + adapter, drawn, learnt, *there, said, fitting)


def refuse_excess_memory(trainer: Trainer, module: PolicyModule, task: Task, *, learns: bool) -> MemoryEstimate | None:
    """Refuse a policy that is larger than the available memory; see :func:`estimate_memory`.

    Raises:
        ValueError: with what it takes and the repair.

    """
    found = estimate_memory(trainer, module, task, learns=learns)
    if found is not None and found.policy > found.room:
        fewer = f"Hold the weights in fewer bits ({' or '.join(found.fitting)}), or use" if found.fitting else "Use"
        raise ValueError(
            f"model.policy.path: {shorten_name(module.policy.path)} takes at least {format_bytes(found.policy)} "
            f"({found.said[0]}), and {found.where} has {format_bytes(found.room)}. {fewer} a smaller model "
            "or a larger machine."
        )
    return found


def _estimate_from_weight_count(known: PolicySizes, module: PolicyModule, there: tuple[int, str]) -> MemoryEstimate:
    policy = module.policy
    bits = memory.QUANTIZED[policy.quantization] if policy.quantization else memory.BYTES[policy.dtype]
    least = known.parameters * bits
    said = (
        f"{known.parameters:,} weights, at least {format_bytes(least)}; "
        "what its architecture takes otherwise is not known"
    )
    return MemoryEstimate(least, 0.0, 0.0, *there, (said,), ())


def _describe_weights(policy: Policy, parameters: int, frozen: float, where: str, trained: int, adapter: int) -> str:
    held = f"{policy.quantization} (the rest {policy.dtype})" if policy.quantization else policy.dtype
    kept = " with gradients and moments" if adapter == memory.TRAINED * trained else ""
    return (
        f"{parameters:,} weights in {held}: {format_bytes(frozen)}{where}; "
        f"{trained:,} of the adapter{kept}: {format_bytes(adapter)}"
    )
