"""The two moments of a step that take memory, decoding and the update, with every completion as long as it may be."""

from rlcredit.engines.fused import KNOWN
from rlcredit.engines.in_process import InProcessEngine
from rlcredit.engines.sampling import Sampling
from rlcredit.memory import parts
from rlcredit.memory.architecture import DecoderArchitecture
from rlcredit.module import PolicyModule

PROMPT = 512
"""Tokens that a prompt is assumed to have; how many it has is known when the questions have been read."""


def estimate_decoding_memory(
    module: PolicyModule, architecture: DecoderArchitecture, prompts: int, sampling: Sampling, mixed: bool
) -> tuple[float, str]:
    """Return the bytes that are taken while prompts are answered, and a line about them.

    Args:
        module: not loaded.
        architecture: of its policy.
        prompts: answered together.
        sampling: how.
        mixed: whether the trainer computes in fewer bits than its weights have.

    """
    engine, policy, rows = module.engine, module.policy, prompts * sampling.completions
    if not isinstance(engine, InProcessEngine):
        return 0.0, f"decoding by {type(engine).__name__}, whose memory is its own"
    rows = min(engine.decode_batch_size or rows, rows)
    fused = engine.fused and not mixed and not policy.quantization and architecture.kind in KNOWN
    merged = 4 * architecture.linear_parameters if policy.dtype == "float32" and (fused or engine.merge) else 0
    cache = parts.cache_bytes(architecture, policy.dtype, rows, PROMPT + sampling.max_tokens)
    other = parts.DRAWING * rows * architecture.vocabulary
    other += parts.prefill_bytes(architecture, policy.dtype, -(-rows // sampling.completions), PROMPT)
    copies = f", weights merged with the adapter {format_bytes(merged)}" if merged else ""
    return merged + cache + other, (
        f"decoding {rows} completions at a time, {PROMPT} (assumed) + {sampling.max_tokens} tokens: keys and values "
        f"{format_bytes(cache)}{copies}, the rest {format_bytes(other)}"
    )


def estimate_update_memory(
    module: PolicyModule, architecture: DecoderArchitecture, prompts: int, ranks: int, mixed: bool
) -> tuple[float, str]:
    """Return the bytes that are taken while a gradient is computed, and a line about them.

    Args:
        module: not loaded.
        architecture: of its policy.
        prompts: of a step, in one process.
        ranks: of all adapters of a layer, added up.
        mixed: whether the trainer computes in fewer bits than its weights have.

    """
    policy, micro, longest = module.policy, module.micro_batches.size, PROMPT + module.sampling.max_tokens
    prompts = max(1, prompts // module.minibatches)
    rows = prompts * module.sampling.completions
    tokens = rows * module.sampling.max_tokens + prompts * PROMPT
    part = rows if micro is None else 1 if isinstance(micro, str) else micro
    if part < rows:
        rows, tokens = part, part * longest
    kept = parts.activation_bytes(architecture, policy.dtype, tokens=tokens, keys=longest, ranks=ranks, mixed=mixed)
    kept += 2 * architecture.linear_parameters if mixed and policy.dtype == "float32" and not policy.quantization else 0
    logits = parts.logit_bytes(architecture, tokens)
    least = "at least " if micro == "auto" else ""
    return kept + logits, (
        f"update, {least}{rows} completion{'s'[: rows > 1]} at a time: activations {format_bytes(kept)}, logits {format_bytes(logits)}"
    )


def format_bytes(number: float) -> str:
    """Write bytes so that they can be read.

    Example:
        >>> format_bytes(690304), format_bytes(61.1e9)
        ('0.7 MiB', '56.9 GiB')

    """
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / 2**20:,.1f} MiB"
