"""How much memory a policy takes, part by part and in bytes, and how much a machine has."""

import os

import torch

from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.model_loading import Precision, Quantization

BYTES: dict[Precision, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
QUANTIZED: dict[Quantization, float] = {"4bit": 1 / 2 + 1 / 64 + 4 / (64 * 256), "8bit": 1.0}
"""Bytes of a quantized weight. 4 bits: a scale of one byte for every 64 weights, one of four for every 256 scales."""

TRAINED = 4 * 4
"""Bytes of a trained weight: float32, with its gradient and two moments."""

KEPT = {4: (16, 16, 16, 4, 4), 2: (28, 12, 10, 2, 4), "mixed": (18, 10, 8, 2, 2)}
"""a to e of the formula above: weights of four bytes, of two bytes, and either in mixed precision."""

DRAWING = 20
"""Bytes of a row and word of the vocabulary while a token is drawn: logits, logarithms, probabilities, and their sums
in eight bytes."""

SCORING = 3 * 2**26
"""Bytes of the largest tensors of logits that are scored; fewer where a batch is small."""


def weight_bytes(architecture: DecoderArchitecture, dtype: Precision, quantization: Quantization | None) -> float:
    """Return the bytes of the frozen weights; embeddings, norms and experts are not quantized."""
    plain, inner = BYTES[dtype], architecture.linear_parameters
    held = QUANTIZED[quantization] if quantization else plain
    return inner * held + (architecture.parameters - inner) * plain


def sharded_weight_bytes(architecture: DecoderArchitecture, dtype: Precision, processes: int) -> float:
    """Return the bytes of frozen weights that a process holds at most if the decoder layers lie in parts.

    Embeddings and head are whole, and two layers are gathered at a time: the one that computes, and the next.

    Args:
        architecture: Architecture of the policy.
        dtype: Precision of its weights.
        processes: Number of processes that share the layers.

    """
    embeddings = (1 if architecture.tied else 2) * architecture.vocabulary * architecture.hidden
    layers = architecture.parameters - embeddings - architecture.hidden
    gathered = min(2, architecture.layers) * layers / architecture.layers
    return BYTES[dtype] * (embeddings + architecture.hidden + layers / processes + gathered)


def cache_bytes(architecture: DecoderArchitecture, dtype: Precision, rows: int, tokens: int) -> int:
    """Return the bytes of keys and values, for a number of rows and tokens."""
    return 2 * architecture.layers * architecture.key_width * BYTES[dtype] * rows * tokens


def activation_bytes(
    architecture: DecoderArchitecture, dtype: Precision, *, tokens: int, keys: int, ranks: int, mixed: bool
) -> int:
    """Return the bytes that backpropagation keeps per batch of tokens, including gradients inside one layer.

    Args:
        architecture: Architecture of the policy.
        dtype: Precision of the policy's weights.
        tokens: Number of tokens, all rows together.
        keys: Largest number of keys that a token attends to.
        ranks: Sum of the ranks of all adapters in a layer.
        mixed: Whether the products are taken in fewer bits than float32 has.

    """
    a, b, c, d, e = KEPT["mixed" if mixed else BYTES[dtype]]
    queries, norms = (
        architecture.query_width,
        4 * architecture.has_qk_norm * (architecture.query_width + architecture.key_width),
    )
    attention = a * architecture.hidden + b * queries + norms + d * keys + e * ranks
    dense = c * architecture.intermediate
    expert = architecture.active * BYTES[dtype] * (2 * architecture.hidden + 4 * architecture.expert_width)
    sparse = len(architecture.sparse)
    whole = architecture.layers * attention + (architecture.layers - sparse) * dense + sparse * expert
    return tokens * (whole + attention + max(dense * (sparse < architecture.layers), expert))


def logit_bytes(architecture: DecoderArchitecture, tokens: int) -> int:
    """Return the bytes of logits while tokens are scored."""
    return min(SCORING, 3 * 4 * tokens * architecture.vocabulary)


def prefill_bytes(architecture: DecoderArchitecture, dtype: Precision, contexts: int, tokens: int) -> int:
    """Return the bytes of one layer while it reads contexts with this many tokens."""
    width = (
        4 * architecture.hidden
        + 2 * architecture.query_width
        + 3 * (architecture.active * architecture.expert_width or architecture.intermediate)
    )
    return contexts * tokens * BYTES[dtype] * (width + tokens)


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
