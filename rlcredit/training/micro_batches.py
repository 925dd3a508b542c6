"""The tokens that an update computes at a time, and what of them its backward pass computes again: as memory allows."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from rlcredit.formulas.distributed import rank_and_world_size
from rlcredit.policy.memory import FORECAST_ERROR, UpdateCost, find_memory_share

Size = int | Literal["auto"]
"""Tokens of prompts and completions; ``auto`` for as many as memory is forecast to hold."""

SCORED_TOKENS = {"cpu": 960, "cuda": 16_384}
"""Tokens that are scored together where memory would allow more: a processor's caches hold no more of them, and an
accelerator is idle with fewer."""

PACKED_TOKENS = 65_536
"""Tokens that are scored together without padding and without graph."""

LEAST_TOKENS = 8_192
"""Tokens with which an accelerator is busy: rather than fewer, parts of an update compute their layers again."""

USABLE_SHARES = {"cpu": 0.5, "cuda": 0.85}
"""Share of a machine's memory, and of an accelerator's, that a run may take."""

MEASURED_MARGIN = 1.1
"""Bytes that are kept free for each measured byte: memory has gaps."""


def choose_scored_tokens(kind: str) -> int:
    """Return the number of tokens scored together on a kind of device, such as ``cuda``.

    Example:
        >>> choose_scored_tokens("cpu"), choose_scored_tokens("cuda")
        (960, 16384)

    """
    return SCORED_TOKENS.get(kind, SCORED_TOKENS["cpu"])


def split_rows_by_tokens(lengths: Sequence[int], tokens: int) -> list[slice]:
    """Cut rows of ascending length into runs that hold so many tokens at most, padding included, or one row.

    Example:
        >>> split_rows_by_tokens([1, 2, 2, 3, 9], tokens=6)
        [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]

    """
    cut = [0]
    for row, length in enumerate(lengths):
        if row > cut[-1] and (row + 1 - cut[-1]) * length > tokens:
            cut.append(row)
    return [slice(*ends) for ends in itertools.pairwise([*cut, len(lengths)])]


class Part(NamedTuple):
    """How an update is computed.

    Args:
        tokens: Tokens that are computed at a time.
        recomputed_layers: Layers, from the first, that the backward pass computes again.
        is_recomputed: Whether the whole of a part is computed again.

    """

    tokens: int
    recomputed_layers: int = 0
    is_recomputed: bool = False

    def forecast_bytes(self, cost: UpdateCost, tokens: int) -> float:
        """Return the bytes that an update keeps at most, of so many tokens in all."""
        if cost.checkpoint is None or not (self.recomputed_layers or self.is_recomputed):
            return self.tokens * cost.graph
        share = self.recomputed_layers / cost.layers
        kept_bytes = share * cost.checkpoint + (1 - share) * cost.graph
        return (self.tokens if self.is_recomputed else tokens) * kept_bytes + self.tokens * 2 * cost.graph / cost.layers


class MicroBatches:
    """Cuts batches into micro-batches of as many tokens each; how they are cut changes no gradient but by rounding.

    Args:
        tokens: Tokens of a micro-batch, prompts and padding included.

    Attributes:
        correction: Measured over forecast bytes of the first update on an accelerator; None before.

    """

    def __init__(self, tokens: Size = "auto") -> None:
        if isinstance(tokens, int) and tokens < 1:
            raise ValueError(f"model.micro_batch_tokens: expected a number from 1 on, or auto, got {tokens}.")
        self.tokens: Size = tokens
        self.correction: float | None = None

    def __str__(self) -> str:
        """Return the setting as the end of a sentence."""
        return "" if self.tokens == "auto" else f", {self.tokens:,} tokens at a time"

    def choose_part(self, cost: UpdateCost, tokens: int, room: float, *, is_separate: bool) -> Part:
        """Return the part of an update that is computed at a time: it fits, and the least is computed again.

        Args:
            cost: Bytes of a token.
            tokens: Tokens of the whole update.
            room: Bytes that are free for it.
            is_separate: Whether each part has its backward pass before the next part is read.

        """
        room /= self.correction or 1 + FORECAST_ERROR
        largest_part = tokens if self.tokens == "auto" else min(self.tokens, tokens)
        if largest_part < tokens and not is_separate:  # as asked for: parts keep little until the loss is known
            is_whole = cost.checkpoint is None
            return Part(largest_part, 0 if is_whole else cost.layers, is_recomputed=is_whole)
        if largest_part * cost.graph <= room:
            return Part(largest_part)
        fitting = int(room // cost.graph)
        if cost.checkpoint is None:
            return Part(max(1, min(largest_part, fitting)), is_recomputed=not is_separate)
        if is_separate and fitting >= LEAST_TOKENS:
            return Part(min(largest_part, fitting))
        layer = 2 * cost.graph / cost.layers  # what a layer keeps, and the gradients of it
        if is_separate:
            return Part(max(1, min(largest_part, int(room // (cost.checkpoint + layer)))), cost.layers)
        part = min(largest_part, LEAST_TOKENS)
        spare = room - part * layer - tokens * cost.checkpoint
        if spare < 0:  # not even the inputs of all layers fit until the loss is known
            return Part(max(1, min(part, int(room // (cost.checkpoint + layer)))), cost.layers, is_recomputed=True)
        kept_layers = int(spare * cost.layers // (tokens * (cost.graph - cost.checkpoint)))
        return Part(part, cost.layers - kept_layers)

    @contextlib.contextmanager
    def measure_memory(self, forecast: float, room: float, device: torch.device) -> Iterator[None]:
        """Correct forecasts by what the first large update takes on an accelerator.

        Args:
            forecast: Bytes that the largest part is forecast to keep.
            room: Bytes that are free for it; in an update that takes little of them, logits would be most of what is
                measured.
            device: Device of the policy.

        """
        if self.correction is not None or device.type != "cuda" or forecast < room / 4:
            yield
            return
        torch.cuda.reset_peak_memory_stats(device)
        bytes_before = torch.cuda.memory_allocated(device)
        yield
        peak_bytes = torch.cuda.max_memory_allocated(device) - bytes_before
        self.correction = min(2.0, max(0.9, MEASURED_MARGIN * peak_bytes / forecast))


def mark_new_prompts(prompt_ids: Tensor) -> Tensor:
    """Return true on rows whose prompt is not that of the row before, of prompts ``(N, L)``, shape ``(N,)``."""
    is_new = torch.ones(len(prompt_ids), dtype=torch.bool)
    is_new[1:] = (prompt_ids[1:] != prompt_ids[:-1]).any(-1)
    return is_new


def split_rows_in_order(lengths: Tensor, prompt_lengths: Tensor, is_new: Tensor, tokens: int) -> list[slice]:
    """Cut rows into runs that hold so many tokens at most without padding, each prompt of a run once, or one row.

    Args:
        lengths: Tokens of each completion, shape ``(N,)``.
        prompt_lengths: Tokens of each prompt, shape ``(N,)``.
        is_new: Rows whose prompt is read, see :func:`mark_new_prompts`, shape ``(N,)``.
        tokens: Tokens of a run.

    """
    cut, tokens_read = [0], 0
    rows = zip(lengths.tolist(), prompt_lengths.tolist(), is_new.tolist(), strict=True)
    for row, (length, prompt_length, has_new_prompt) in enumerate(rows):
        tokens_read += length + (prompt_length if has_new_prompt else 0)
        if row > cut[-1] and tokens_read > tokens:
            cut.append(row)
            tokens_read = length + prompt_length
    return [slice(*ends) for ends in itertools.pairwise([*cut, len(lengths)])]


def find_update_room(device: torch.device, weight_bytes: int, trained_weights: int) -> float:
    """Return the bytes that an update may take beside weights, gradients, moments and facts of the rollout.

    It follows from the machine alone, not from what else runs on it, so that a run that is repeated is cut alike.

    Args:
        device: Device of the policy.
        weight_bytes: Bytes of all its weights.
        trained_weights: Number of those that learn.

    """
    processes = rank_and_world_size()[1] if device.type == "cpu" else 1
    share = USABLE_SHARES["cpu" if device.type == "cpu" else "cuda"]
    return max(0.0, share * find_memory_share(device, processes)[0] - weight_bytes - 12 * trained_weights)
