"""The decoding loop: it continues contexts with given noise, for any source of hidden states."""

from abc import ABC, abstractmethod

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


class DecodingForward(ABC):
    """Reads contexts and continues them; see :class:`rlcredit.decoding.fused_forward.FusedForward`."""

    stop_interval: int = 1
    """Tokens after which one looks which rows have ended: an accelerator has to wait for that."""

    @abstractmethod
    def read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        """Read contexts; return the last hidden state of every row."""

    @abstractmethod
    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row; return the last hidden states."""

    @abstractmethod
    def keep_rows(self, rows: Tensor) -> None:
        """Keep some rows."""

    def draw_tokens(self, draw: "TokenSampler", tokens: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Take the last token of every row, shape ``(B,)``, and draw the N tokens that follow it.

        Args:
            draw: Sampler that chooses the tokens.
            tokens: Last tokens, shape ``(B,)``.
            noise: Uniforms, shape ``(B, N)``.

        Returns:
            Hidden states from which tokens were drawn, shape ``(N, B, D)``, the tokens, ``(N, B)``, and their
            log-probability, entropy and sum of squares, ``(N, 3, B)``.

        """
        draws = []
        for column in noise.unbind(-1):
            states = self.append_tokens(tokens)
            tokens, facts = draw(states, column)
            draws.append((states, tokens, facts))
        return tuple(map(torch.stack, zip(*draws, strict=True)))


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
        """A start after all others: tokens drawn in a row that fills up a batch are dropped."""
        return self.shape[0] * self.shape[1]

    def store_tokens(self, starts: Tensor, position: int, states: Tensor, tokens: Tensor, facts: Tensor) -> None:
        """Keep what :meth:`DecodingForward.draw_tokens` has drawn from a position on; ``starts`` are ``(B,)``."""
        if self.keeps_hidden:
            self.hidden.append(states.flatten(0, 1))
        self.places.append(
            (starts + torch.arange(position, position + len(tokens), device=self.device)[:, None]).flatten()
        )
        self.tokens.append(tokens.flatten())
        self.facts.append(facts.transpose(0, 1).flatten(1))

    def to_samples(self, stops: Tensor, limits: Tensor) -> Samples:
        """Return all tokens up to the end of each row.

        Args:
            stops: True at the tokens that end a completion, shape ``(V,)``.
            limits: Most tokens that each row may have, shape ``(B,)``.

        """
        size = self.discard_start
        places, tokens = torch.cat(self.places).clamp(max=size), torch.cat(self.tokens)
        ids = torch.zeros(size + 1, dtype=torch.long, device=self.device).index_copy_(0, places, tokens)
        ids = ids[:size].view(self.shape)
        is_last = stops[ids] | (limits[:, None] <= torch.arange(1, self.shape[1] + 1, device=self.device))
        mask = is_last.cumsum(-1) <= is_last
        lengths = mask.sum(-1)
        width = int(lengths.max())
        ids, mask = ids[:, :width].where(mask[:, :width], 0), mask[:, :width]
        facts = torch.zeros(3, size + 1, device=self.device).index_copy_(1, places, torch.cat(self.facts, -1))
        logprobs, entropy, squares = facts[:, :size].view(3, *self.shape)[:, :, :width].where(mask, 0)
        is_cut = ~stops[ids.gather(1, lengths[:, None] - 1).squeeze(-1)]
        samples = Samples(ids, mask, logprobs, is_cut, entropy, squares)
        if self.keeps_hidden:
            drawn_from = torch.cat(self.hidden)
            states = drawn_from.new_zeros(size + 1, drawn_from.shape[1]).index_copy_(0, places, drawn_from)
            samples.hidden = states[:size].view(*self.shape, -1)[:, :width].masked_fill_(~mask[..., None], 0)
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
    noise, limits, position = noise[rows], limits[rows], 0
    tokens, facts = draw(states, noise[:, 0])
    drawn = states[None], tokens[None], facts[None]
    while True:
        storage.store_tokens(starts, position, *drawn)
        tokens = drawn[1]
        position += len(tokens)
        alive = alive & ~draw.stops[tokens].any(0) & (limits > position)
        tokens, open_rows = tokens[-1], int(alive.sum())
        if not open_rows:
            return
        if open_rows + (-open_rows % ROW_MULTIPLE) <= MAX_OPEN_SHARE * len(alive):
            row_numbers = _fill_up_rows(alive.nonzero().squeeze(-1))
            reader.keep_rows(row_numbers)
            noise, limits, tokens = noise[row_numbers], limits[row_numbers], tokens[row_numbers]
            alive = torch.arange(len(row_numbers), device=context_numbers.device) < open_rows
            starts = starts[row_numbers].where(alive, storage.discard_start)
        drawn = reader.draw_tokens(draw, tokens, noise[:, position : position + reader.stop_interval])


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

    def __call__(self, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return tokens, shape ``(N,)``, and their log-probability, entropy and sum of squares, ``(3, N)``.

        Args:
            states: Last hidden states, shape ``(N, D)``.
            noise: Uniforms, shape ``(N,)``.

        """
        logits = tempered_logits(states, self.head, self.temperature)
        with torch.autocast(states.device.type, enabled=False):  # it would round the probabilities
            log_p = logits.log_softmax(-1)
            probabilities = log_p.exp()
            drawn_from = probabilities if self.token_filter is None else self.token_filter(probabilities)
            tokens = inverse_cdf(drawn_from, noise)
            logprobs = log_p.gather(1, tokens[:, None]).squeeze(1)
            squares, entropy = (torch.linalg.vecdot(probabilities, factors) for factors in (probabilities, log_p))
            return tokens, torch.stack([logprobs, -entropy, squares])


def _fill_up_rows(rows: Tensor) -> Tensor:
    """Append copies of the first row up to a multiple of :data:`ROW_MULTIPLE`."""
    return torch.cat([rows, rows[:1].expand(-len(rows) % ROW_MULTIPLE)])
