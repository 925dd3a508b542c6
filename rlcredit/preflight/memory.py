"""The memory that a run is forecast to take, beside the memory there is; a run that cannot fit is refused."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from lightning.pytorch import Trainer

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.credit.contract import OperatorContract
from rlcredit.credit.stack_checks import select_operators
from rlcredit.decoding.fused_forward import FUSED_KINDS
from rlcredit.decoding.in_process import MEMORY_SHARE, InProcessEngine
from rlcredit.policy.architecture import DecoderArchitecture, parse_architecture
from rlcredit.policy.memory import (
    DRAWN_LOGIT_BYTES,
    FORECAST_ERROR,
    PRECISION_BYTES,
    QUANTIZED_BYTES,
    TRAINED_BYTES,
    MemoryForecast,
    PassSize,
    WeightHolding,
    estimate_update_cost,
    find_memory_share,
    forecast_memory,
    weight_bytes,
)
from rlcredit.policy.packed_forward import find_packing_obstacle
from rlcredit.policy.policy import MAX_MERGED_WEIGHTS
from rlcredit.policy.policy_sizes import find_policy_sizes, read_policy_config
from rlcredit.preflight.policy import select_lora_layers
from rlcredit.tasks.task import Task
from rlcredit.training.micro_batches import choose_scored_tokens, find_update_room
from rlcredit.training.module import PolicyModule
from rlcredit.training.setup_checks import find_whole_reader, merges_adapter
from rlcredit.training.sharded_base import SHARDED_BASE, ShardedBaseStrategy

LIBRARY_BYTES = {"cpu": 540 * 2**20, "cuda": 2**30}
"""Bytes that Python, torch and what they load take before the model is read, as measured; on a GPU its context and
fragments, which have not been measured."""

ASSUMED_PROMPT_TOKENS = 512
"""Tokens that a prompt is assumed to have; how many it has is known when the questions have been read."""

MAX_PROCESSES = 64
"""Most processes that are considered."""

EASY_SHARE = 0.5
"""Share of the memory below which a way to hold the weights fits with ease."""

FIT_VERDICTS = ("fits", "may not fit", "does not fit")
"""Whether a way to hold the weights fits: at its peak, without the batch, which can be made smaller, or not at all."""


class WeightWay(NamedTuple):
    """A way to hold the frozen weights, and the memory of one process under it.

    Args:
        holding: The way.
        setting: Settings that choose it.
        forecast: What the policy takes.
        texts: Lines about weights, decoding and update.
        libraries: Bytes that Python, torch and what they load take.
        room: Bytes that are free for the process.
        owner: Owner of that memory, in words.

    """

    holding: WeightHolding
    setting: str
    forecast: MemoryForecast
    texts: tuple[str, ...]
    libraries: int
    room: int
    owner: str

    @property
    def least(self) -> float:
        """Bytes that are taken however small a batch is."""
        return self.forecast.weights + self.libraries

    @property
    def peak(self) -> float:
        """Largest number of bytes used at one time."""
        return self.forecast.peak + self.libraries

    @property
    def verdict(self) -> str:
        """Whether it fits, one of :data:`FIT_VERDICTS`."""
        fits, may_not, cannot = FIT_VERDICTS
        if self.peak <= self.room:
            return fits
        return may_not if self.least <= self.room else cannot


@dataclass(frozen=True)
class MemoryEstimate:
    """Estimated memory of one process, under the configured way to hold the frozen weights and under others.

    Args:
        way: Configured way.
        others: Other ways.
        repairs: Settings that hold the weights in fewer bits, or in parts, and would fit.
        decodes: Whether completions are drawn in the process, rather than scored after another has drawn them.

    """

    way: WeightWay
    others: tuple[WeightWay, ...] = ()
    repairs: tuple[str, ...] = ()
    decodes: bool = True

    @property
    def room(self) -> int:
        """Bytes that are free for the process."""
        return self.way.room

    @property
    def peak_bytes(self) -> float:
        """Largest number of bytes used at one time."""
        return self.way.peak

    def report_lines(self) -> Iterator[str]:
        """Yield the memory used, part by part, whether it fits, and which other ways to hold the weights would."""
        yield from self.way.texts
        if self.way.forecast.cache:
            parts = f"logits {format_bytes(self.way.forecast.logits)} and libraries {format_bytes(self.way.libraries)}"
            sure = f"about {format_bytes(self.peak_bytes)} at once, give or take {FORECAST_ERROR:.0%}, with {parts}"
        else:
            sure = f"at least {format_bytes(self.way.least)}, {format_bytes(self.way.libraries)} of it for libraries"
        yield f"{sure}; {self.way.owner} has {format_bytes(self.room)}"
        if self.peak_bytes > self.room:
            yield f"it may not fit: {self.advice}"
        if self.others and any(way.peak > EASY_SHARE * way.room for way in (self.way, *self.others)):
            yield from _align_ways([self.way, *self.others])

    @property
    def advice(self) -> str:
        """How to reduce the peak."""
        if self.way.forecast.activations > self.way.forecast.cache:
            return "lower model.sampling.max_tokens or model.policy.lora.rank, or hold the weights in 4 bits."
        lower = "model.engine.init_args.decode_batch_size" if self.decodes else "model.micro_batch_tokens"
        return f"lower {lower} or max_tokens of model.sampling and model.validation."


def _align_ways(ways: list[WeightWay]) -> Iterator[str]:
    """Yield one line for each way to hold the weights: what a process takes of its share, and how to choose it."""
    rows: list[tuple[str, ...]] = []
    for way in sorted(ways, key=lambda way: (way.holding.is_sharded, way.holding.quantization is not None)):
        bits, processes = way.holding.quantization, way.holding.processes
        name = "sharded" if way.holding.is_sharded else f"{bits[0]}-bit" if bits else "whole"
        share = format_bytes(way.room) + (f" in each of {processes} processes" if processes > 1 else "")
        rows.append((name, format_bytes(way.peak), share, way.verdict, way.setting))
    peak_width, share_width = (max(len(row[column]) for row in rows) for column in (1, 2))
    for name, peak, share, verdict, setting in rows:
        yield f"{name:<7}  about {peak:>{peak_width}} of {share:<{share_width}}  {verdict:<12}  {setting}"


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
    policy = module.policy
    sizes = find_policy_sizes(policy.location)
    if sizes is None:
        return None
    is_sharded = isinstance(trainer.strategy, ShardedBaseStrategy)
    holding = WeightHolding(policy.dtype, policy.quantization, trainer.world_size, is_sharded)
    if sizes.architecture is None:
        size = QUANTIZED_BYTES[policy.quantization] if policy.quantization else PRECISION_BYTES[policy.dtype]
        least = sizes.parameters * size / (holding.processes if is_sharded else 1)
        text = f"{sizes.parameters:,} weights, at least {format_bytes(least)}; what else it takes is not known"
        return MemoryEstimate(_place_way(trainer, holding, "in use", MemoryForecast(least), (text,)))
    decodes = isinstance(module.engine, InProcessEngine) and not is_sharded
    run = _PlannedRun(trainer, module, task, sizes.architecture, learns)
    way, other_ways = run.forecast_way(holding, "in use"), tuple(run.list_other_ways(holding))
    repairs = [
        other_way.setting
        for other_way in other_ways
        if other_way.verdict != FIT_VERDICTS[-1] and other_way.forecast.weights < way.forecast.weights
    ]
    if policy.dtype == "float32" and not policy.quantization:
        half_way = run.forecast_way(holding._replace(dtype="bfloat16"), "model.policy.dtype: bfloat16")
        repairs[:0] = [half_way.setting] if half_way.verdict != FIT_VERDICTS[-1] else []
    return MemoryEstimate(way, other_ways, tuple(repairs), decodes)


def find_pass_obstacle(trainer: Trainer, module: PolicyModule, holding: WeightHolding | None = None) -> str | None:
    """Return why an update is read by the model's own pass, with padding; None if it is not, or nothing is known.

    Args:
        trainer: Trainer that has not begun.
        module: Module; it is not loaded.
        holding: How the weights are held; as configured if None.

    """
    policy, device = module.policy, trainer.strategy.root_device
    is_sharded = isinstance(trainer.strategy, ShardedBaseStrategy)
    holding = holding or WeightHolding(policy.dtype, policy.quantization, trainer.world_size, is_sharded)
    config = read_policy_config(policy.location)
    architecture = parse_architecture(config)
    if holding.is_sharded:
        return "its weights lie in parts"
    if device.type == "cpu" and architecture is not None:
        sizes = [layer.in_features * layer.out_features for layer in architecture.adaptable_layers().values()]
        if max(sizes) <= MAX_MERGED_WEIGHTS:
            return "its layers are small"
    precisions = {"bf16-mixed": "bfloat16", "16-mixed": "float16"}
    computing_dtype = getattr(torch, precisions.get(str(trainer.precision), holding.dtype))
    return find_packing_obstacle(config, holding.dtype, holding.quantization, computing_dtype) if config else None


def _place_way(
    trainer: Trainer, holding: WeightHolding, setting: str, forecast: MemoryForecast, texts: tuple[str, ...]
) -> WeightWay:
    """Return a way to hold the weights with the memory that each process has."""
    device = trainer.strategy.root_device
    room, owner = find_memory_share(device, -(-holding.processes // trainer.num_nodes) if device.type == "cpu" else 1)
    libraries = LIBRARY_BYTES.get(device.type, LIBRARY_BYTES["cuda"])
    return WeightWay(holding, setting, forecast, texts, libraries, room, owner)


@dataclass(frozen=True)
class _PlannedRun:
    """A run from whose settings its passes follow."""

    trainer: Trainer
    module: PolicyModule
    task: Task
    architecture: DecoderArchitecture
    learns: bool

    def forecast_way(self, holding: WeightHolding, setting: str) -> WeightWay:
        """Return a way to hold the weights, with the memory of one process."""
        module, policy, shape = self.module, self.module.policy, self.architecture
        is_mixed = "mixed" in str(self.trainer.precision)
        layers = select_lora_layers(policy, shape.adaptable_layers())
        adapter_weights = sum(policy.lora.rank * (layer.in_features + layer.out_features) for layer in layers.values())
        adapter = adapter_weights * (TRAINED_BYTES if self.learns else PRECISION_BYTES["float32"])
        prompts = max(1, self.task.prompts_per_step // holding.processes)
        decodings = list(self._list_decodings(holding, prompts))
        update, activations, update_text = None, None, "no update"
        if self.learns:
            update, activations, update_text = self._plan_update(holding, prompts, adapter_weights, is_mixed=is_mixed)
        decoder = module.decoder if isinstance(module.decoder, InProcessEngine) else InProcessEngine()
        is_fused = decoder.fused and shape.kind in FUSED_KINDS and not is_mixed and not holding.quantization
        draws = any(name for _, name in decodings)
        merges = draws and holding.dtype == "float32" and (is_fused or decoder.merge)
        reads_states = any("hidden" in operator.reads for operator in self._list_operators())
        forecast = forecast_memory(
            shape,
            holding,
            adapter,
            [size for size, _ in decodings],
            update,
            draws=draws,
            merges=merges,
            is_mixed=is_mixed,
            kept_states=prompts * module.sampling.completions * module.sampling.max_tokens if reads_states else 0,
            activations=activations,
            kind=self._device_kind,
        )
        bits = f"{holding.quantization} (the rest {holding.dtype})" if holding.quantization else holding.dtype
        parts = f" in each of {holding.processes} processes, two layers whole at a time" if holding.is_sharded else ""
        moments = " with gradients and moments" if self.learns else ""
        size, name = max(decodings, key=lambda decoding: decoding[0].keys)
        cache = format_bytes(forecast.cache)
        tokens = size.prompt_tokens + size.tokens - ASSUMED_PROMPT_TOKENS
        decoding_text = (
            f"decoding {size.rows} {name} at a time, {ASSUMED_PROMPT_TOKENS} (assumed) + {tokens} tokens: keys, "
            f"{'values and weights merged with the adapter' if merges else 'values'} {cache}"
        )
        if not name:
            engine = "elsewhere" if holding.is_sharded else f"by {type(module.engine).__name__}"
            decoding_text = f"decoding {engine}, whose memory is its own; scoring what it has drawn {cache}"
        texts = (
            f"{shape.parameters:,} weights in {bits}: {format_bytes(forecast.weights - adapter)}{parts}; "
            f"{adapter_weights:,} of the adapter{moments}: {format_bytes(adapter)}",
            decoding_text,
            f"{update_text}: activations {format_bytes(forecast.activations)}" if update else update_text,
        )
        return _place_way(self.trainer, holding, setting, forecast, texts)

    def _list_operators(self) -> Sequence[OperatorContract]:
        return select_operators(read_callbacks(self.trainer)) if self.learns else []

    def _list_decodings(self, holding: WeightHolding, prompts: int) -> Iterator[tuple[PassSize, str]]:
        """Yield the passes that draw, each with the name of what is drawn; without one if they score an engine's."""
        module, operators = self.module, self._list_operators()
        engine = module.engine if not holding.is_sharded else None
        requests = [(prompts, module.sampling)] if self.learns else []
        for held_out_set in self.task.held_out_sets:
            batch = held_out_set.task.validation_batch
            share = -(-held_out_set.size // holding.processes) if held_out_set.size else batch
            requests.append((min(batch, share), held_out_set.choose_sampling(module.validation)))
        for number, sampling in requests:
            rows, tokens = number * sampling.completions, sampling.max_tokens
            if isinstance(engine, InProcessEngine):
                rows = min(engine.decode_batch_size or self._count_fitting_rows(holding, tokens), rows)
                yield PassSize(number, ASSUMED_PROMPT_TOKENS, rows, tokens), "completions"
            else:
                rows = self._count_rows(rows, tokens)
                part = self._count_part(holding, rows, tokens)
                yield PassSize(min(number, rows), ASSUMED_PROMPT_TOKENS, part, tokens), ""
        decoder, sampling = module.decoder, module.sampling
        if any("oracle" in operator.reads for operator in operators) and not holding.is_sharded:
            # Some continue their completion at its end, and others at its start.
            rows = decoder.decode_batch_size or prompts * sampling.completions
            context = ASSUMED_PROMPT_TOKENS + sampling.max_tokens
            yield PassSize(rows, context, rows, sampling.max_tokens), "continuations"

    @property
    def _device_kind(self) -> str:
        return "cpu" if self.trainer.strategy.root_device.type == "cpu" else "cuda"

    def _plan_update(
        self, holding: WeightHolding, prompts: int, adapter_weights: int, *, is_mixed: bool
    ) -> tuple[PassSize, float, str]:
        """Return the size of an update, the bytes that it keeps at most, and the beginning of a line about it."""
        module, tokens = self.module, self.module.sampling.max_tokens
        prompts = max(1, prompts // module.minibatches)
        counts = [operator.count_continuations() for operator in self._list_operators()]
        continuations = sum(count[0] * count[1] for count in counts if count)
        rows = prompts * module.sampling.completions * (1 + continuations)
        size = PassSize(prompts, ASSUMED_PROMPT_TOKENS, rows, tokens)
        is_packed = find_pass_obstacle(self.trainer, module, holding) is None
        cost = estimate_update_cost(
            self.architecture, holding.dtype, size, rank=module.policy.lora.rank, is_packed=is_packed, is_mixed=is_mixed
        )
        total = prompts * ASSUMED_PROMPT_TOKENS + rows * tokens if is_packed else size.keys
        weights = weight_bytes(self.architecture, holding)
        room = find_update_room(self.trainer.strategy.root_device, int(weights), adapter_weights)
        is_scaled = str(self.trainer.precision) == "16-mixed"
        is_separate = module.loss.row_wise and not holding.is_sharded and not is_scaled
        part = module.micro_batches.choose_part(cost, total, room, is_separate=is_separate)
        bound_word = "" if None not in counts else "at least "
        recomputation = f", {part.recomputed_layers} layers computed again" if part.recomputed_layers else ""
        recomputation = ", each computed again" if part.is_recomputed else recomputation
        text = f"update of {bound_word}{total:,} tokens, {part.tokens:,} at a time{recomputation}"
        return size, part.forecast_bytes(cost, part.tokens if is_separate else total), text

    def _count_fitting_rows(self, holding: WeightHolding, tokens: int) -> int:
        """Return the number of completions that are decoded at a time unless a number is set, as memory allows."""
        device, shape = self.trainer.strategy.root_device, self.architecture
        if device.type == "cpu":
            return sys.maxsize
        key_bytes = 2 * shape.layers * shape.key_width * PRECISION_BYTES[holding.dtype]
        row_bytes = key_bytes * (ASSUMED_PROMPT_TOKENS + tokens) + 2 * DRAWN_LOGIT_BYTES * shape.vocabulary
        room = MEMORY_SHARE * find_memory_share(device, 1)[0] - weight_bytes(shape, holding)
        return max(1, int(room // row_bytes))

    def _count_rows(self, rows: int, tokens: int) -> int:
        """Return the number of completions that are scored at a time."""
        micro = self.module.scoring_batches.tokens
        return rows if micro == "auto" else max(1, min(rows, micro // (ASSUMED_PROMPT_TOKENS + tokens)))

    def _count_part(self, holding: WeightHolding, rows: int, tokens: int) -> int:
        """Return the number of rows read together after their prompts; all, if every pass is an exchange."""
        scored_tokens = choose_scored_tokens(self.trainer.strategy.root_device.type)
        return rows if holding.is_sharded else max(1, min(rows, scored_tokens // tokens))

    def list_other_ways(self, holding: WeightHolding) -> Iterator[WeightWay]:
        """Yield the ways to hold the weights that are not configured, each with the settings that choose it."""
        undo = "--trainer.strategy=ddp" if holding.processes > 1 else "--trainer.strategy=auto"
        if holding.quantization or holding.is_sharded:
            whole = holding._replace(quantization=None, is_sharded=False)
            yield self.forecast_way(whole, undo if holding.is_sharded else "--model.policy.quantization=null")
        if not holding.quantization and not merges_adapter(self.module):
            fewer_bits = holding._replace(quantization="4bit", is_sharded=False)
            with_undo = f" with {undo}" if holding.is_sharded else ""
            yield self.forecast_way(fewer_bits, f"model.policy.quantization: 4bit{with_undo}")
        if not holding.is_sharded and not find_whole_reader(self.module, read_callbacks(self.trainer)):
            ways = [self._forecast_sharded(holding, number) for number in self._list_process_numbers(holding)]
            if ways:
                yield min(ways, key=lambda way: FIT_VERDICTS.index(way.verdict))

    def _forecast_sharded(self, holding: WeightHolding, processes: int) -> WeightWay:
        """Return the memory with layers in parts, one in each process."""
        devices = f" --trainer.devices={processes}" if holding.processes == 1 else ""
        plain = " --model.policy.quantization=null" if holding.quantization else ""
        setting = f"--trainer.strategy={SHARDED_BASE}{devices}{plain} with completions from a server"
        return self.forecast_way(WeightHolding(holding.dtype, None, processes, True), setting)

    def _list_process_numbers(self, holding: WeightHolding) -> list[int]:
        """Return the numbers of processes that could share the layers, prompts and held-out questions."""
        prompts, minibatches = self.task.prompts_per_step, self.module.minibatches
        sizes = (held_out_set.size for held_out_set in self.task.held_out_sets)
        limit = min(prompts, MAX_PROCESSES, *(size for size in sizes if size))
        numbers = range(2, limit + 1) if holding.processes == 1 else [holding.processes]
        return [number for number in numbers if prompts % number == 0 and prompts // number % minibatches == 0]


def refuse_excess_memory(trainer: Trainer, module: PolicyModule, task: Task, *, learns: bool) -> MemoryEstimate | None:
    """Refuse a policy that is larger than the available memory; see :func:`estimate_memory`.

    Raises:
        ValueError: with what it takes and the repair.

    """
    estimate = estimate_memory(trainer, module, task, learns=learns)
    if estimate is not None and estimate.way.least > estimate.room:
        way, repairs = estimate.way, estimate.repairs
        methods = dict.fromkeys("in parts" if SHARDED_BASE in repair else "in fewer bits" for repair in repairs)
        fewer = f"Hold the weights {' or '.join(methods)} ({' or '.join(repairs)}), or use"
        raise ValueError(
            f"model.policy.path: {shorten_name(module.policy.path)} takes at least {format_bytes(way.least)} "
            f"({way.texts[0]}; libraries: {format_bytes(way.libraries)}), and {way.owner} has "
            f"{format_bytes(estimate.room)}. {fewer if repairs else 'Use'} a smaller model or a larger machine."
        )
    return estimate


def format_bytes(number: float) -> str:
    """Format a number of bytes for people.

    Example:
        >>> format_bytes(690304), format_bytes(61.1e9)
        ('0.7 MiB', '56.9 GiB')

    """
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / 2**20:,.1f} MiB"
