"""How much memory a policy takes, part by part and in bytes, and how much a machine has."""

import os
from collections.abc import Container, Mapping
from typing import NamedTuple

import torch

from rlcredit.policy.architecture import DecoderArchitecture, LinearShape
from rlcredit.policy.model_loading import Precision, Quantization

BYTES: dict[Precision, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
QUANTIZED: dict[Quantization, float] = {"4bit": 1 / 2 + 1 / 64 + 4 / (64 * 256), "8bit": 1.0}
"""Bytes of a quantized weight. 4 bits: a scale of one byte for every 64 weights, one of four for every 256 scales."""

TRAINED = 4 * 4
"""Bytes of a trained weight: float32, with its gradient and two moments."""

KEPT = {4: (16, 8, 16, 4), 2: (28, 8, 10, 4), "mixed": (18, 6, 8, 2)}
"""Bytes that backpropagation keeps of a token in each layer, for weights of four bytes, of two, and either in mixed
precision: of each channel of the residual stream (two norms keep their input and what they return, in float32 once
more each), of each channel of the queries (queries and the output of attention), of each channel between the gated
layers, and of each rank of an adapter. Adapters read float32: in fewer bits their inputs are kept twice."""

PASSING = 12
"""Bytes of each channel between the gated layers that one layer takes for a moment: what base and adapter return and
their sum, forwards, or the gradients of gate, of up and of their product, backwards."""

DRAWING = 20
"""Bytes of a row and word of the vocabulary while a token is drawn: logits, logarithms, probabilities, and their sums
in eight bytes."""

SCORING = 2 * 2**26
"""Bytes of the two largest tensors of logits, which coexist while tokens are scored; fewer where a batch is small."""


class TokensRead(NamedTuple):
    """Tokens of one pass: prompts, each read once, and completions that follow them.

    Args:
        prompts: Number of different prompts.
        prompt: Tokens of a prompt.
        rows: Number of completions.
        tokens: Tokens of a completion.

    """

    prompts: int
    prompt: int
    rows: int
    tokens: int

    @property
    def number(self) -> int:
        """Number of tokens."""
        return self.prompts * self.prompt + self.rows * self.tokens

    @property
    def keys(self) -> int:
        """Keys that are attended to: a completion has those of its prompt for itself."""
        return self.prompts * self.prompt + self.rows * (self.prompt + self.tokens)

    @property
    def pairs(self) -> int:
        """Pairs of a token and a key."""
        return self.prompts * self.prompt**2 + self.rows * self.tokens * (self.prompt + self.tokens)


def weight_bytes(architecture: DecoderArchitecture, dtype: Precision, quantization: Quantization | None) -> float:
    """Return the bytes of the frozen weights; embeddings, norms and experts are not quantized."""
    plain, inner = BYTES[dtype], architecture.linear_parameters
    held = QUANTIZED[quantization] if quantization else plain
    return inner * held + (architecture.parameters - inner) * plain


def part_bytes(architecture: DecoderArchitecture, dtype: Precision, processes: int) -> float:
    """Return the bytes of frozen weights that a process keeps if the decoder layers lie in parts.

    Embeddings and head are whole.

    Args:
        architecture: Architecture of the policy.
        dtype: Precision of its weights.
        processes: Number of processes that share the layers.

    """
    layers = architecture.layers * layer_parameters(architecture)
    return BYTES[dtype] * (architecture.parameters - layers + layers / processes)


def layer_parameters(architecture: DecoderArchitecture) -> float:
    """Return the number of weights of a decoder layer, the mean over all of them."""
    embeddings = (1 if architecture.tied else 2) * architecture.vocabulary * architecture.hidden
    return (architecture.parameters - embeddings - architecture.hidden) / architecture.layers


def sharded_weight_bytes(architecture: DecoderArchitecture, dtype: Precision, processes: int) -> float:
    """Return the bytes of frozen weights that a process holds at most if the decoder layers lie in parts.

    Two layers are gathered at a time, the one that computes and the next, and each lies for a moment in the buffer of
    the exchange as well.
    """
    gathered = 2 * min(2, architecture.layers) * layer_parameters(architecture)
    return part_bytes(architecture, dtype, processes) + BYTES[dtype] * gathered


def cache_bytes(architecture: DecoderArchitecture, dtype: Precision, rows: int, tokens: int) -> int:
    """Return the bytes of keys and values, for a number of rows and tokens."""
    return 2 * architecture.layers * architecture.key_width * BYTES[dtype] * rows * tokens


def repeated_bytes(architecture: DecoderArchitecture, dtype: Precision, rows: int, tokens: int) -> int:
    """Return the bytes of one layer's keys and values as attention reads them: once for every query head."""
    return 2 * architecture.query_width * BYTES[dtype] * rows * tokens


def activation_bytes(
    architecture: DecoderArchitecture, dtype: Precision, read: TokensRead, *, ranks: int, mixed: bool
) -> int:
    """Return the bytes that backpropagation keeps of a pass.

    Keys and values are kept as attention reads them: once for every query head, and for every completion anew from the
    first token of its prompt. So is the mask, as numbers to be added to the scores.

    Args:
        architecture: Architecture of the policy.
        dtype: Precision of the policy's weights.
        read: Tokens of the pass.
        ranks: Sum of the ranks of all adapters in a layer.
        mixed: Whether the products are taken in fewer bits than float32 has.

    """
    a, b, c, d = KEPT["mixed" if mixed else BYTES[dtype]]
    computed = 2 if mixed else BYTES[dtype]
    norms = 4 * architecture.has_qk_norm * (architecture.query_width + architecture.key_width)
    own = a * architecture.hidden + b * architecture.query_width + norms + d * ranks
    attention = own * read.number + computed * (2 * architecture.query_width * read.keys + read.pairs)
    dense = c * architecture.intermediate * read.number
    expert = architecture.active * BYTES[dtype] * (2 * architecture.hidden + 4 * architecture.expert_width)
    sparse = len(architecture.sparse)
    return architecture.layers * attention + (architecture.layers - sparse) * dense + sparse * expert * read.number


def passing_bytes(architecture: DecoderArchitecture, tokens: int) -> int:
    """Return the bytes that one layer takes for a moment while it reads tokens, or computes their gradients."""
    inner = max(architecture.intermediate, architecture.active * architecture.expert_width)
    return tokens * (PASSING * inner + 8 * architecture.hidden)


def cast_bytes(architecture: DecoderArchitecture, passes: int) -> int:
    """Return the bytes of float32 weights in half as many bits: mixed precision keeps a copy for every pass."""
    return 2 * architecture.linear_parameters * passes


def logit_bytes(architecture: DecoderArchitecture, tokens: int) -> int:
    """Return the bytes of logits while tokens are scored."""
    return min(SCORING, 2 * 4 * tokens * architecture.vocabulary)


def factor_bytes(layers: Mapping[str, LinearShape], adapted: Container[str], rank: int) -> int:
    """Return the bytes of an adapter as the fused decoder holds it beside weights of two bytes.

    Layers with the same input are one product: their first factors lie side by side, the second ones in a block
    diagonal with a row for every output.

    Args:
        layers: Linear layers, by name.
        adapted: Names of those with an adapter.
        rank: Rank of each.

    """
    groups: dict[str, list[str]] = {}
    for name in layers:
        is_last = name.endswith(("o_proj", "down_proj"))
        groups.setdefault(name if is_last else name.rpartition(".")[0], []).append(name)
    held = 0
    for names in groups.values():
        ranks = rank * sum(name in adapted for name in names)
        held += 4 * ranks * (layers[names[0]].in_features + sum(layers[name].out_features for name in names))
    return held


def prefill_bytes(architecture: DecoderArchitecture, dtype: Precision, contexts: int, tokens: int) -> int:
    """Return the bytes of one layer of the fused decoder while it reads contexts with this many tokens.

    Between the gated layers are gate, up and their product. In two bytes the adapter's share of gate and up lies beside
    them in float32, and so does the sum.
    """
    size, inner = BYTES[dtype], architecture.active * architecture.expert_width or architecture.intermediate
    width = 2 * architecture.hidden + 2 * architecture.query_width + 2 * architecture.key_width
    between = 3 * size if size == 4 else 2 * size + 2 * 2 * 4
    masks = size * tokens * tokens * (contexts + 1)
    return contexts * tokens * (size * width + between * inner) + masks


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
