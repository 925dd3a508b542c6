"""The default engine: decode with the training weights, in this process."""

import contextlib
from collections.abc import Iterator, Sequence
from math import ceil, inf

import torch
from torch import Tensor

from rlcredit.base.messages import warn_once
from rlcredit.config.allowed_values import MAX_THREADS
from rlcredit.decoding.decoding_loop import ROW_MULTIPLE, DecodingForward, DrawnTokens, TokenSampler, decode_rows
from rlcredit.decoding.engine import Decoder
from rlcredit.decoding.episode_loop import EpisodeRows, SingleTurns, TurnTaker, decode_episodes
from rlcredit.decoding.fused_forward import FusedForward, find_fusion_obstacle
from rlcredit.decoding.graphed_forward import KEY_BLOCK, GraphedForward
from rlcredit.decoding.sampling import Samples
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.decoding.transformers_forward import TransformersForward
from rlcredit.policy.architecture import parse_architecture
from rlcredit.policy.memory import DRAWN_LOGIT_BYTES, find_memory_share
from rlcredit.policy.packed_forward import MAX_STATE_ERROR
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PADDING

MEMORY_SHARE = 0.8
"""Share of a GPU's memory that decoding fills; the rest is for fragments, copies of a layer and the libraries."""


class InProcessEngine(Decoder):
    """Decode with a cache of keys and values; a group shares one prefill, finished rows leave the batch.

    Dense models of known architectures (Llama, Qwen2, Qwen3) are decoded by a forward pass of few operations, which is
    compared with the model's own when it is first used; all others, or where the two differ, by the model's own, and
    one line says so.

    Args:
        decode_batch_size: Completions decoded at a time; if None, all those of a batch, and as many for the oracle, or
            on a GPU as many of them as memory holds. It changes memory and speed only: a small policy answers the
            oracle several times faster with 512.
        threads: CPU threads while decoding; as many as the run has if None. With one, completions and their
            log-probabilities are the same bit for bit whatever is decoded beside them. With more, attention rounds
            differently in different threads; a small model, whose tensors are too small to share, is no faster for it.
        merge: Whether to add the adapter into float32 weights also where the model's own forward decodes; the other one
            always does. Log-probabilities then agree with the trainer's up to rounding.
        fused: Whether the forward pass of few operations may be used.

    """

    can_keep_hidden = True

    def __init__(
        self, decode_batch_size: int | None = None, threads: int | None = 1, merge: bool = False, fused: bool = True
    ) -> None:
        if decode_batch_size is not None and decode_batch_size < 1:
            raise ValueError(f"InProcessEngine expects decode_batch_size >= 1, got {decode_batch_size}.")
        if threads is not None and not 1 <= threads <= MAX_THREADS:
            raise ValueError(f"InProcessEngine expects 1 to {MAX_THREADS} threads, got {threads}.")
        self.decode_batch_size, self.threads, self.merge, self.fused = decode_batch_size, threads, merge, fused
        self._compared: dict[int, bool] = {}

    @torch.no_grad()
    def decode(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        limits: Tensor | None = None,
        token_filter: TokenFilter | None = None,
        keeps_hidden: bool = False,
    ) -> Samples:
        """Continue contexts by given noise; see :meth:`rlcredit.decoding.engine.Decoder.decode`.

        ``token_filter``, which only an evaluation gives, says which tokens may be drawn.
        """
        device = prompt_ids.device
        noise, shape = noise.to(device), (noise.shape[0], noise.shape[1])
        limits = torch.full(shape[:1], shape[1]) if limits is None else limits
        limits, storage = limits.to(device), DrawnTokens(shape, device, keeps_hidden)
        draw = TokenSampler(policy.head, temperature, policy.stop_ids, token_filter)
        with self._read_with(policy) as reader:
            for part in self._split_rows(policy, prompt_ids, shape):
                decode_rows(
                    reader, draw, prompt_ids, context_numbers[part], noise[part], limits[part], storage, part.start
                )
        return storage.to_samples(draw.stops, limits)

    @torch.no_grad()
    def continue_episodes(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        taker: TurnTaker,
        limits: Tensor | None = None,
        token_filter: TokenFilter | None = None,
        keeps_hidden: bool = False,
    ) -> Samples:
        """Play episodes to their end; see :meth:`rlcredit.decoding.engine.Decoder.continue_episodes`.

        The cache is kept over all turns of a row, unless rows wait for each other. Options as in :meth:`decode`.
        """
        if taker.is_slow:
            return super().continue_episodes(policy, prompt_ids, noise, context_numbers, temperature, taker, limits)
        device, shape = prompt_ids.device, (noise.shape[0], noise.shape[1])
        noise, storage = noise.to(device), DrawnTokens(shape, device, keeps_hidden)
        episodes = EpisodeRows(taker, [shape[1]] * shape[0] if limits is None else limits.tolist())
        draw = TokenSampler(policy.head, temperature, policy.stop_ids, token_filter)
        with self._read_with(policy) as reader:
            for part in self._split_rows(policy, prompt_ids, shape):
                decode_episodes(
                    reader, draw, prompt_ids, context_numbers[part], noise[part], episodes, storage, part.start
                )
        return storage.to_episodes(episodes.list_turns().to(device), torch.tensor(episodes.is_cut, device=device))

    def draw_turns(
        self,
        policy: Policy,
        contexts: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        limits: Tensor,
        taker: TurnTaker,
    ) -> Samples:
        """Draw a turn behind each context, up to its end; arguments as in :meth:`decode`."""
        single_turns = SingleTurns(taker.has_ended)
        return self.continue_episodes(policy, contexts, noise, context_numbers, temperature, single_turns, limits)

    @contextlib.contextmanager
    def _read_with(self, policy: Policy) -> Iterator[DecodingForward]:
        """Open the context in which a policy decodes; yield its forward pass."""
        with policy.evaluation_mode(), _limit_threads(self.threads), contextlib.ExitStack() as merge_context:
            reader = self._choose_forward(policy)
            if self.merge and isinstance(reader, TransformersForward):
                merge_context.enter_context(policy.merge_adapter())
            yield reader

    def _split_rows(self, policy: Policy, prompt_ids: Tensor, shape: tuple[int, int]) -> list[slice]:
        """Return the rows that are decoded at a time, of completions of a shape."""
        size = self.decode_batch_size or count_fitting_rows(policy, prompt_ids.shape, shape)
        return [slice(first_row, first_row + size) for first_row in range(0, shape[0], size)]

    def _choose_forward(self, policy: Policy) -> DecodingForward:
        if not self.fused:
            return TransformersForward(policy)
        reason = find_fusion_obstacle(policy)
        if reason is None:
            if id(policy.lm) not in self._compared:
                self._compared[id(policy.lm)] = has_matching_fused_forward(policy)
            if self._compared[id(policy.lm)]:
                return make_fused_forward(policy)
            reason = "what the fused forward computes differs from the model's own"
        warn_once(f"{policy.path} is decoded by its own forward pass, at a fraction of the speed: {reason}.")
        return TransformersForward(policy)


def count_fitting_rows(policy: Policy, prompts: Sequence[int], completions: Sequence[int]) -> int:
    """Return the number of completions to decode at a time, in equal parts: all of them, or what a GPU's memory holds.

    That follows from the bytes that this process has allocated, so that a repeated run cuts batches in the same places.

    Args:
        policy: Policy of any architecture; of one whose sizes are not known, all are decoded.
        prompts: Shape of the contexts, ``(P, L)``.
        completions: Shape of the completions, ``(B, T)``.

    """
    (contexts, length), (rows, tokens) = prompts, completions
    memory = find_free_bytes(policy.device)
    shape = parse_architecture(policy.lm.config.to_dict()) if memory < inf else None
    if shape is None:
        return rows
    # Three tensors between the gated layers, and some smaller ones, while a context is read.
    read_numbers = 4 * shape.intermediate * length * contexts / rows
    kept_numbers = 2 * shape.layers * shape.key_width * (length + tokens + KEY_BLOCK)
    # The first token is drawn outside the graph, which has memory of its own.
    row_bytes = policy.head.element_size() * (read_numbers + kept_numbers) + 2 * DRAWN_LOGIT_BYTES * shape.vocabulary
    parts = ceil(rows / max(1, memory // row_bytes))
    return ceil(rows / parts / ROW_MULTIPLE) * ROW_MULTIPLE


def find_free_bytes(device: torch.device) -> float:
    """Return the bytes that decoding may take on a GPU; elsewhere, infinity."""
    if device.type != "cuda":
        return inf
    return MEMORY_SHARE * find_memory_share(device, 1)[0] - torch.cuda.memory_allocated(device)


def make_fused_forward(policy: Policy) -> FusedForward:
    """Return the pass of few operations, on an accelerator as a graph."""
    return GraphedForward(policy) if policy.device.type == "cuda" else FusedForward(policy)


def has_matching_fused_forward(policy: Policy) -> bool:
    """Whether the fused forward gives the model's own hidden states, for three contexts and three more tokens.

    Args:
        policy: Policy of an architecture that seems known.

    """
    size = min(len(policy.head), 1000)
    ids = torch.randint(size, (3, 19), generator=torch.Generator().manual_seed(0)).to(policy.device)
    ids[1, :5] = ids[2, :11] = PADDING
    rows, model_forward = torch.arange(3, device=policy.device), TransformersForward(policy)
    fused_forward = make_fused_forward(policy)
    for position in range(16, 20):
        pair = [
            reader.read_contexts(ids[:, :16], rows, 3) if position == 16 else reader.append_tokens(ids[:, position - 1])
            for reader in (model_forward, fused_forward)
        ]
        model_states, fused_states = (states.float() for states in pair)
        if not (fused_states - model_states).norm() <= MAX_STATE_ERROR[policy.head.dtype] * model_states.norm():
            return False
    return True


@contextlib.contextmanager
def _limit_threads(number: int | None) -> Iterator[None]:
    old_number = torch.get_num_threads()
    torch.set_num_threads(number or old_number)
    try:
        yield
    finally:
        torch.set_num_threads(old_number)
