"""Forecast of the memory that a policy takes, in four parts, and the memory that a machine has."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import torch

from rlcredit.formulas.uncertainty import LOGIT_CHUNK_BYTES
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.model_loading import Precision, Quantization

PRECISION_BYTES: dict[Precision, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
QUANTIZED_BYTES: dict[Quantization, float] = {"4bit": 1 / 2 + 1 / 64 + 4 / (64 * 256), "8bit": 1.0}
"""Bytes of a quantized weight. 4 bits: a scale of one byte for every 64 weights, one of four for every 256 scales."""

TRAINED_BYTES = 4 * 4
"""Bytes of a trained weight: float32, with its gradient and two moments."""

ACTIVATION_BYTES = {4: (16, 8, 16), 2: (28, 8, 10), "mixed": (18, 6, 8)}
"""Bytes that backpropagation keeps of a token in each layer, for weights of four bytes, of two, and either in mixed
precision: of each channel of the residual stream, of the queries, and between the gated layers."""

DRAWN_LOGIT_BYTES = 20
"""Bytes of a row and word of the vocabulary while a token is drawn: logits, logarithms, probabilities and sums."""

SCORED_LOGIT_BYTES = {kind: 2 * size for kind, size in LOGIT_CHUNK_BYTES.items()}
"""Bytes of the two largest tensors of logits, which coexist while tokens are scored; fewer where a batch is small."""

HIDDEN_COPIES = 3
"""Copies of hidden states that coexist after the last token: one by one, joined, and in their places."""

FORECAST_ERROR = 0.3
"""Relative error of a forecast; of the runs that were measured, none took over 18 percent more or 7 percent less."""


class WeightHolding(NamedTuple):
    """A way to hold the frozen weights.

    Args:
        dtype: Precision of the weights.
        quantization: Bits of the linear layers; None for those of the rest.
        processes: Number of processes that train together.
        is_sharded: Whether they share the layers; otherwise each holds all of them.

    """

    dtype: Precision
    quantization: Quantization | None = None
    processes: int = 1
    is_sharded: bool = False


class PassSize(NamedTuple):
    """Size of one pass: prompts, each read once, and the completions that follow them.

    Args:
        prompts: Number of different prompts.
        prompt_tokens: Tokens of a prompt.
        rows: Number of completions.
        tokens: Tokens of a completion.

    """

    prompts: int
    prompt_tokens: int
    rows: int
    tokens: int

    @property
    def keys(self) -> int:
        """Number of keys that completions attend to: each has those of its prompt for itself."""
        return self.rows * (self.prompt_tokens + self.tokens)

    @property
    def pairs(self) -> int:
        """Number of pairs of a token and a key, for which attention has a mask."""
        return self.prompts * self.prompt_tokens**2 + self.tokens * self.keys


class MemoryForecast(NamedTuple):
    """Memory that one process is forecast to take, in bytes.

    Args:
        weights: Frozen weights, and the adapter with its gradients and moments; taken at all times.
        cache: Keys and values of the largest decoding, and weights that are merged with the adapter for it.
        logits: Logits while tokens are drawn or scored.
        activations: What backpropagation keeps of the largest micro-batch.

    """

    weights: float
    cache: float = 0.0
    logits: float = 0.0
    activations: float = 0.0

    @property
    def peak(self) -> float:
        """Largest number of bytes at one time: decoding and the update follow each other."""
        return self.weights + self.logits + max(self.cache, self.activations)


def forecast_memory(
    architecture: DecoderArchitecture,
    holding: WeightHolding,
    adapter: float,
    decodings: Sequence[PassSize],
    update: PassSize | None = None,
    *,
    draws: bool = True,
    merges: bool = False,
    is_mixed: bool = False,
    kept_states: int = 0,
    activations: float | None = None,
    kind: str = "cpu",
) -> MemoryForecast:
    """Forecast the memory of one process, within :data:`FORECAST_ERROR`.

    Args:
        architecture: Architecture of the policy.
        holding: How its frozen weights are held.
        adapter: Bytes of the adapter.
        decodings: Sizes of the passes that draw completions, or score what another engine has drawn.
        update: Size of the largest micro-batch of an update; None without updates.
        draws: Whether completions are drawn in this process.
        merges: Whether the adapter is added into a copy of the weights to draw them.
        is_mixed: Whether products are taken in fewer bits than float32 has.
        kept_states: Tokens whose hidden states are kept for an operator.
        activations: Bytes that backpropagation keeps; those of the model's own pass over the micro-batch if None.
        kind: Kind of device, ``cpu`` or ``cuda``.

    """
    size, vocabulary = PRECISION_BYTES[holding.dtype], architecture.vocabulary
    states = size * architecture.hidden * kept_states
    # Whoever scores keeps all prompts while completions are read after them, part by part.
    keys = max(
        pass_size.keys + (0 if draws else pass_size.prompts * pass_size.prompt_tokens) for pass_size in decodings
    )
    cache = 2 * architecture.layers * architecture.key_width * size * keys
    cache += HIDDEN_COPIES * states + (size * architecture.linear_parameters if merges else 0)
    drawn_logits = DRAWN_LOGIT_BYTES * vocabulary * max(decoding.rows for decoding in decodings) if draws else 0
    tokens = max(pass_size.rows * pass_size.tokens for pass_size in ([update] if update else decodings))
    logits = max(drawn_logits, min(SCORED_LOGIT_BYTES[kind], 2 * 4 * vocabulary * tokens))
    activations = activations or 0.0
    if update:
        activations = activations or activation_bytes(architecture, holding.dtype, update, is_mixed=is_mixed)
        activations += states
        if is_mixed and size == PRECISION_BYTES["float32"] and not holding.quantization:
            activations += 2 * 2 * architecture.linear_parameters  # a copy in fewer bits for prompts and completions
    return MemoryForecast(weight_bytes(architecture, holding) + adapter, cache, logits, activations)


def weight_bytes(architecture: DecoderArchitecture, holding: WeightHolding) -> float:
    """Return the bytes of the frozen weights in one process.

    Embeddings, norms and experts are not quantized. Where processes share the decoder layers, two layers are gathered
    at a time, the one that computes and the next, and each lies for a moment in the buffer of the exchange as well.
    """
    plain, linear = PRECISION_BYTES[holding.dtype], architecture.linear_parameters
    if not holding.is_sharded:
        linear_bytes = QUANTIZED_BYTES[holding.quantization] if holding.quantization else plain
        return linear * linear_bytes + (architecture.parameters - linear) * plain
    embeddings = (1 if architecture.tied else 2) * architecture.vocabulary * architecture.hidden
    layers = architecture.parameters - embeddings - architecture.hidden
    gathered_layers = 2 * min(2, architecture.layers) * layers / architecture.layers
    return plain * (architecture.parameters - layers + layers / holding.processes + gathered_layers)


def activation_bytes(
    architecture: DecoderArchitecture, dtype: Precision, read: PassSize, *, is_mixed: bool = False
) -> float:
    """Return the bytes that backpropagation keeps of a pass.

    Keys and values are kept as attention reads them: once for every query head, and for every completion anew from the
    first token of its prompt.
    """
    size = PRECISION_BYTES[dtype]
    residual, query, inner = ACTIVATION_BYTES["mixed" if is_mixed else size]
    channels = inner * architecture.intermediate
    if architecture.sparse:
        channels = architecture.active * size * (2 * architecture.hidden + 4 * architecture.expert_width)
    channels += residual * architecture.hidden + query * architecture.query_width
    attention = (2 if is_mixed else size) * (2 * architecture.query_width * read.keys + read.pairs)
    return architecture.layers * (channels * (read.prompts * read.prompt_tokens + read.rows * read.tokens) + attention)


class UpdateCost(NamedTuple):
    """Bytes that an update keeps of a token until its backward pass, over all layers.

    Args:
        graph: All that the backward pass reads.
        checkpoint: The inputs of the layers alone; None where layers cannot be computed again one by one.
        layers: Number of layers.

    """

    graph: float
    checkpoint: float | None
    layers: int


def estimate_update_cost(
    architecture: DecoderArchitecture,
    dtype: Precision,
    size: PassSize,
    *,
    rank: int = 0,
    is_packed: bool = False,
    is_mixed: bool = False,
    keys_per_token: float | None = None,
) -> UpdateCost:
    """Return the bytes that an update keeps of a token, padding included where it is read.

    The pass without padding keeps the residual stream before the norms and behind them, queries and keys before their
    norms, queries, keys, values and output of attention, both halves of the gated layer and their product, and products
    with the factors A.

    Args:
        architecture: Sizes of the policy.
        dtype: Precision of its weights.
        size: Prompts and completions of the update.
        rank: Rank of the adapter.
        is_packed: Whether the pass without padding reads them, see :mod:`rlcredit.policy.packed_forward`.
        is_mixed: Whether products are taken in fewer bits than float32 has.
        keys_per_token: Tokens that attention sees, padding included, over tokens read without padding; as if all
            completions had one length if None.

    """
    if not is_packed:
        graph = activation_bytes(architecture, dtype, size, is_mixed=is_mixed) / max(1, size.keys)
        return UpdateCost(graph, None, architecture.layers)
    heads = architecture.query_width + architecture.key_width
    # In float32 an accelerator's kernel reads keys and values once for each head of queries.
    attention = 4 * architecture.query_width if dtype == "float32" else 2 * heads
    channels = 2 * architecture.layer_norms * architecture.hidden + architecture.query_width + 7 * rank
    channels += heads * architecture.has_qk_norm
    tokens = size.prompts * size.prompt_tokens + size.rows * size.tokens
    channels += attention * (size.keys / tokens if keys_per_token is None else keys_per_token)
    channels += 3 * architecture.intermediate
    if architecture.sparse:
        channels += architecture.active * (2 * architecture.hidden + 4 * architecture.expert_width)
    scale = PRECISION_BYTES[dtype] * architecture.layers
    return UpdateCost(scale * channels, scale * architecture.hidden, architecture.layers)


def read_machine_memory() -> int:
    """Return the bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def find_memory_share(device: torch.device, processes: int) -> tuple[int, str]:
    """Return the bytes that a process may use, and the device they are on.

    Args:
        device: Device of the process.
        processes: Number of processes that share this machine's memory.

    """
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return properties.total_memory, f"the {properties.name}"
    return (
        read_machine_memory() // processes,
        "this machine" if processes == 1 else f"each of {processes} processes of this machine",
    )
