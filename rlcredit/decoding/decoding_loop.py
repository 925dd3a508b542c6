"""The decoding loop: it continues contexts with given noise, for any source of hidden states."""

from typing import Protocol

import torch
from torch import Tensor

from rlcredit.decoding.noise import inverse_cdf
from rlcredit.decoding.sampling import Samples
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.formulas.uncertainty import tempered_logits

ROW_MULTIPLE = 16
"""Batches are filled up to a multiple of this many rows: matrix kernels for a handful of rows add in another order than
those for many, and a completion must not depend on which others are decoded beside it."""

MAX_OPEN_SHARE = 0.75
"""Finished rows leave once at most this share of the batch is unfinished; each time the cache is copied."""


class DecodingForward(Protocol):
    """Reads contexts and continues them; see :class:`rlcredit.decoding.fused_forward.FusedForward`."""

    def read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        """Read contexts; return the last hidden state of every row."""
        ...

    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row."""
        ...

    def keep_rows(self, rows: Tensor) -> None:
        """Keep some rows."""
        ...


class DrawnTokens:
    """The tokens drawn so far, with log-probability, entropy and sum of squares of each.

    Args:
        shape: Shape of the rows, ``(B, T)``.
        device: Device of the policy.
        keeps_hidden: Whether to keep the hidden state from which each token was drawn.

    """

    def __init__(self, shape: tuple[int, int], device: torch.device, keeps_hidden: bool = False) -> None:
        self.shape, self.device, self.keeps_hidden = shape, device, keeps_hidden
        self.places: list[Tensor] = []
        self.tokens: list[Tensor] = []
        self.facts: list[Tensor] = []
        self.hidden: list[Tensor] = []

    def row_starts(self, rows: Tensor) -> Tensor:
        """Return the start of the tokens of some rows, shape ``(N,)``."""
        return rows * self.shape[1]

    @property
    def discard_start(self) -> int:
        """A start after all others: tokens drawn in a finished row are dropped."""
        return self.shape[0] * self.shape[1]

    def store_tokens(self, places: Tensor, states: Tensor, tokens: Tensor, *facts: Tensor) -> None:
        """Keep tokens with log-probability, entropy and sum of squares, all ``(N,)``; ``states`` are ``(N, D)``."""
        if self.keeps_hidden:
            self.hidden.append(states)
        self.places.append(places)
        self.tokens.append(tokens)
        self.facts.append(torch.stack(facts))

    def to_samples(self, stops: Tensor) -> Samples:
        """Return all tokens; ``stops`` is true at the tokens that end a completion, shape ``(V,)``."""
        size = self.discard_start
        places, tokens = torch.cat(self.places).clamp(max=size), torch.cat(self.tokens)
        ids = torch.zeros(size + 1, dtype=torch.long, device=self.device).index_copy_(0, places, tokens)
        ids = ids[:size].view(self.shape)
        mask = torch.zeros(size + 1, dtype=torch.bool, device=self.device).index_fill_(0, places, True)
        mask = mask[:size].view(self.shape)
        facts = torch.zeros(3, size + 1, device=self.device).index_copy_(1, places, torch.cat(self.facts, -1))
        last_tokens, width = ids.gather(1, mask.sum(-1, keepdim=True) - 1).squeeze(-1), int(mask.any(0).sum())
        logprobs, entropy, squares = facts[:, :size].view(3, *self.shape)[:, :, :width]
        samples = Samples(ids[:, :width], mask[:, :width], logprobs, ~stops[last_tokens], entropy, squares)
        if self.keeps_hidden:
            drawn_from = torch.cat(self.hidden)
            states = drawn_from.new_zeros(size + 1, drawn_from.shape[1]).index_copy_(0, places, drawn_from)
            samples.hidden = states[:size].view(*self.shape, -1)[:, :width]
        return samples


def decode_rows(
    reader: DecodingForward,
    draw: "TokenSampler",
    prompt_ids: Tensor,
    context_numbers: Tensor,
    noise: Tensor,
    limits: Tensor,
    storage: DrawnTokens,
    first_row: int,
) -> None:
    """Draw tokens in every row until the last row has ended.

    Args:
        reader: Forward pass of the policy over the contexts.
        draw: Sampler that chooses the tokens.
        prompt_ids: Contexts, left-padded, shape ``(P, L)``.
        context_numbers: Number of the context that each row continues, shape ``(B,)``.
        noise: Uniforms in [0, 1), one per token, shape ``(B, T)``.
        limits: Most tokens that each row may have, shape ``(B,)``.
        storage: Storage for the tokens drawn.
        first_row: Row of that storage at which the first row is written.

    """
    contexts, context_of = torch.unique(context_numbers, return_inverse=True)
    rows = _fill_up_rows(torch.arange(len(context_numbers), device=context_numbers.device))
    states = reader.read_contexts(prompt_ids[contexts], context_of[rows], noise.shape[1])
    alive = torch.arange(len(rows), device=context_numbers.device) < len(context_numbers)
    starts = storage.row_starts(rows + first_row).where(alive, storage.discard_start)
    noise, limits, shortest = noise[rows], limits[rows], int(limits.min())
    for position in range(noise.shape[1]):
        tokens, *facts = draw(states, noise[:, position])
        storage.store_tokens(starts + position, states, tokens, *facts)
        is_finished = draw.stops[tokens] if position + 1 < shortest else draw.stops[tokens] | (limits <= position + 1)
        alive = alive & ~is_finished
        open_rows = int(alive.sum())
        if not open_rows:
            return
        if open_rows + (-open_rows % ROW_MULTIPLE) <= MAX_OPEN_SHARE * len(alive):
            row_numbers = _fill_up_rows(alive.nonzero().squeeze(-1))
            reader.keep_rows(row_numbers)
            noise, limits, starts, tokens = (
                noise[row_numbers],
                limits[row_numbers],
                starts[row_numbers],
                tokens[row_numbers],
            )
            alive = torch.arange(len(row_numbers), device=context_numbers.device) < open_rows
        starts = starts.where(alive, storage.discard_start)
        states = reader.append_tokens(tokens)


class TokenSampler:
    """Draw tokens from the tempered policy with given noise.

    Args:
        head: Output embedding, shape ``(V, D)``.
        temperature: Sampling temperature T.
        stop_ids: Tokens that end a completion.
        token_filter: Filter of the tokens that may be drawn, in an evaluation; all tokens if None.

    """

    def __init__(
        self, head: Tensor, temperature: float, stop_ids: Tensor, token_filter: TokenFilter | None = None
    ) -> None:
        self.head, self.temperature, self.token_filter = head, temperature, token_filter
        self.stops = torch.zeros(len(head), dtype=torch.bool, device=head.device).index_fill_(0, stop_ids, True)

    def __call__(self, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return token, log-probability, entropy and sum of squared probabilities, all ``(N,)``.

        Args:
            states: Last hidden states, shape ``(N, D)``.
            noise: Uniforms, shape ``(N,)``.

        """
        log_p = tempered_logits(states, self.head, self.temperature).log_softmax(-1)
        probabilities = log_p.exp()
        tokens = inverse_cdf(probabilities if self.token_filter is None else self.token_filter(probabilities), noise)
        logprobs, squares = (
            log_p.gather(1, tokens[:, None]).squeeze(1),
            torch.linalg.vecdot(probabilities, probabilities),
        )
        return tokens, logprobs, -torch.linalg.vecdot(probabilities, log_p), squares


def _fill_up_rows(rows: Tensor) -> Tensor:
    """Append copies of the first row up to a multiple of :data:`ROW_MULTIPLE`."""
    return torch.cat([rows, rows[:1].expand(-len(rows) % ROW_MULTIPLE)])
