"""The memory that the two halves of a step take on top of the weights: drawing completions, and the update."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlcredit.credit.contract import OperatorContract
from rlcredit.decoding.decoding_loop import ROW_MULTIPLE
from rlcredit.decoding.fused_forward import KNOWN
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy import memory
from rlcredit.policy.architecture import DecoderArchitecture, LinearShape
from rlcredit.policy.memory import TokensRead
from rlcredit.policy.model_loading import Quantization
from rlcredit.training.micro_batches import Size, choose_scored_tokens
from rlcredit.training.module import PolicyModule

HELD_STATES = 3
"""Copies of hidden states that coexist after the last token: one by one, joined, and in their places."""

PROMPT = 512
"""Tokens that a prompt is assumed to have; how many it has is known when the questions have been read."""


@dataclass(frozen=True)
class Holding:
    """A way to hold the frozen weights.

    Args:
        quantization: Bits of the linear layers; None for those of the rest.
        processes: Number of processes that train together.
        is_sharded: Whether they share the layers; otherwise each holds all of them.

    """

    quantization: Quantization | None
    processes: int
    is_sharded: bool


@dataclass(frozen=True)
class StepMemory:
    """What the two halves of a step take is calculated from.

    Args:
        module: Module; it is not loaded.
        architecture: Architecture of the module's policy.
        holding: Way in which the weights are held.
        layers: Layers with an adapter, by name.
        mixed: Whether the trainer computes in fewer bits than its weights have.
        operators: Credit stack.
        device: Kind of the device, such as ``cuda``.

    """

    module: PolicyModule
    architecture: DecoderArchitecture
    holding: Holding
    layers: dict[str, LinearShape]
    mixed: bool
    operators: Sequence[OperatorContract]
    device: str

    def estimate_decoding(self, prompts: int, sampling: Sampling, trains: bool = False) -> tuple[float, str]:
        """Return the bytes used while completions are sampled, and a line about them.

        Args:
            prompts: Number of prompts answered together.
            sampling: How completions are drawn.
            trains: Whether the operators will see them.

        """
        engine, rows = self.module.engine, prompts * sampling.completions
        states = self.estimate_states(rows * sampling.max_tokens) if trains else 0
        if not isinstance(engine, InProcessEngine) or self.holding.is_sharded:
            said = (
                "decoding elsewhere" if isinstance(engine, InProcessEngine) else f"decoding by {type(engine).__name__}"
            )
            taken = self.estimate_scoring(prompts, sampling) + states
            return taken, f"{said}, whose memory is its own; scoring what it has drawn {format_bytes(taken)}"
        rows = min(engine.decode_batch_size or rows, rows)
        contexts = -(-rows // sampling.completions)
        return self._estimate_draws(rows, contexts, PROMPT, sampling.max_tokens, "completions", HELD_STATES * states)

    def estimate_states(self, tokens: int) -> float:
        """Return the bytes of the last hidden states of so many tokens, if an operator reads them."""
        if not any("hidden" in operator.reads for operator in self.operators):
            return 0
        return tokens * self.architecture.hidden * memory.BYTES[self.module.policy.dtype]

    def estimate_continuations(self, prompts: int) -> tuple[float, str] | None:
        """Return the bytes used while an oracle continues completions, and a line about them; None without one.

        Args:
            prompts: Number of prompts in a step, in one process.

        """
        asking = [operator for operator in self.operators if "oracle" in operator.reads]
        decoder, sampling = self.module.decoder, self.module.sampling
        if not asking or not isinstance(decoder, InProcessEngine) or self.holding.is_sharded:
            return None
        rows = decoder.decode_batch_size or prompts * sampling.completions
        shared = min((operator.count_continuations() or (0, 1))[1] or 1 for operator in asking)
        context = PROMPT + sampling.max_tokens  # some leave their completion at its end, and others at its start
        return self._estimate_draws(rows, -(-rows // shared), context, sampling.max_tokens, "continuations")

    def _estimate_draws(
        self, rows: int, contexts: int, context: int, tokens: int, what: str, kept: float = 0
    ) -> tuple[float, str]:
        """Return the bytes used while so many rows continue contexts of so many tokens, and a line about them.

        Args:
            rows: Number of rows drawn together.
            contexts: Number of different contexts.
            context: Tokens of a context.
            tokens: Tokens that follow it.
            what: Name of what is drawn.
            kept: Bytes of what is kept of all rows meanwhile.

        """
        decoder, policy, shape = self.module.decoder, self.module.policy, self.architecture
        assert isinstance(decoder, InProcessEngine)
        is_cast = self.mixed and policy.dtype == "float32"
        fused = decoder.fused and not is_cast and not self.holding.quantization and shape.kind in KNOWN
        filled = rows + -rows % ROW_MULTIPLE
        cache = memory.cache_bytes(shape, policy.dtype, filled, context + tokens)
        drawing = memory.DRAWING * filled * shape.vocabulary
        merged = copies = 0.0
        if policy.dtype == "float32" and (fused or decoder.merge):
            merged = copies = 4 * shape.linear_parameters
        elif fused:
            copies = memory.factor_bytes(shape.linear_layers(), self.layers, policy.lora.rank)
            copies = copies / 2 if self.mixed else copies  # autocast rounds the factors, too
        if fused:
            taken = cache + max(drawing, memory.prefill_bytes(shape, policy.dtype, contexts, context))
        else:
            # Contexts have a cache of their own while they are read; rows attend in one layer after the other.
            grown = memory.cache_bytes(shape, policy.dtype, contexts, context)
            grown += memory.passing_bytes(shape, contexts * context)
            repeated = memory.repeated_bytes(shape, policy.dtype, filled, context + tokens)
            taken = max(cache + max(repeated, drawing), grown)
        taken += kept
        other = taken - cache + copies - merged
        said = f", weights merged with the adapter {format_bytes(merged)}" if merged else ""
        assumed = f"{PROMPT} (assumed) + {context + tokens - PROMPT} tokens"
        return taken + copies, (
            f"decoding {rows} {what} at a time, {assumed}: keys and values {format_bytes(cache)}{said}, "
            f"the rest {format_bytes(other)}"
        )

    def estimate_scoring(self, prompts: int, sampling: Sampling) -> float:
        """Return the bytes used while completions are scored that another engine has drawn.

        Args:
            prompts: Number of prompts answered together.
            sampling: How completions are drawn.

        """
        shape, policy = self.architecture, self.module.policy
        rows = self._count_rows(self.module.scoring_batches.size, prompts * sampling.completions)
        prompts, part = min(prompts, rows), self._count_part(rows, sampling.max_tokens)
        cache = memory.cache_bytes(shape, policy.dtype, prompts, PROMPT)
        read = memory.cache_bytes(shape, policy.dtype, part, PROMPT + sampling.max_tokens)
        read += memory.repeated_bytes(shape, policy.dtype, part, PROMPT + sampling.max_tokens)
        read += memory.passing_bytes(shape, part * sampling.max_tokens)
        scored = memory.logit_bytes(shape, part * sampling.max_tokens)
        return cache + max(memory.passing_bytes(shape, prompts * PROMPT), read, scored)

    def estimate_update(self, prompts: int) -> tuple[float, str]:
        """Return the bytes used while a gradient is computed, and a line about them.

        Args:
            prompts: Number of prompts in a step, in one process.

        """
        module, shape, policy = self.module, self.architecture, self.module.policy
        micro, tokens = module.micro_batches.size, module.sampling.max_tokens
        prompts = max(1, prompts // module.minibatches)
        answers = prompts * module.sampling.completions
        continued, known = self._count_continuations()
        every = answers * (1 + continued)
        rows = self._count_rows(micro, every)
        part = self._count_part(rows, tokens) if rows == every else rows
        read = TokensRead(min(prompts, rows), PROMPT, rows, tokens)
        ranks = policy.lora.rank * round(len(self.layers) / shape.layers)
        kept = memory.activation_bytes(shape, policy.dtype, read, ranks=ranks, mixed=self.mixed)
        kept += memory.cache_bytes(shape, policy.dtype, read.prompts, PROMPT)
        if self.mixed and policy.dtype == "float32" and not self.holding.quantization:
            kept += memory.cast_bytes(shape, 1 + -(-rows // part))
        # One after the other: the last layer is read, its tokens are scored, and its gradient is computed.
        passing = memory.passing_bytes(shape, part * tokens)
        reading = memory.cache_bytes(shape, policy.dtype, part, PROMPT + tokens) + passing
        other = max(reading, memory.logit_bytes(shape, part * tokens))
        least = "at least " if (rows < every and micro == "auto") or not known else ""
        s = "s"[: rows > 1]
        what = f"completion{s}" if not continued and known else f"completion{s} or continuation{s}"
        kept += self.estimate_states(answers * module.minibatches * tokens)
        return kept + other, (
            f"update, {least}{rows} {what} at a time: activations {format_bytes(kept)}, the rest {format_bytes(other)}"
        )

    def _count_continuations(self) -> tuple[int, bool]:
        """Return how many continuations of a completion are trained on, and whether that is known."""
        counted = [operator.count_continuations() for operator in self.operators]
        return sum(each[0] * each[1] for each in counted if each), None not in counted

    def _count_rows(self, micro: Size, rows: int) -> int:
        """Return how many of some rows a micro-batch has: with ``auto`` one, or all where memory does not run out."""
        if micro is None or (micro == "auto" and self.device == "cpu"):
            return rows
        return 1 if isinstance(micro, str) else min(micro, rows)

    def _count_part(self, rows: int, tokens: int) -> int:
        """Return how many rows are read together after their prompts; all, if every pass is an exchange."""
        return rows if self.holding.is_sharded else max(1, min(rows, choose_scored_tokens(self.device) // tokens))


def format_bytes(number: float) -> str:
    """Format a number of bytes for people.

    Example:
        >>> format_bytes(690304), format_bytes(61.1e9)
        ('0.7 MiB', '56.9 GiB')

    """
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / 2**20:,.1f} MiB"
