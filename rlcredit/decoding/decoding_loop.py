"""The decoding loop: it continues contexts with given noise, for any source of hidden states."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from rlcredit.decoding.noise import inverse_cdf
from rlcredit.decoding.sampling import Samples
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.formulas.turns import find_read_lengths
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
            draws.append((states[None], tokens[None], facts[None]))
        return draws[0] if len(draws) == 1 else tuple(map(torch.cat, zip(*draws, strict=True)))


class DrawnTokens:
    """The tokens drawn so far, with log-probability, entropy and sum of squares of each.

    Args:
        shape: Shape of the rows, ``(B, T)``.
        device: Device of the policy.
        keeps_hidden: Whether to keep the hidden state from which each token was drawn.

    """

    def __init__(self, shape: tuple[int, int], device: torch.device, keeps_hidden: bool = False) -> None:
        self.discard_row, self.keeps_hidden = shape[0], keeps_hidden  # a row for what fills up a batch
        self.ids = torch.zeros(shape[0] + 1, shape[1], dtype=torch.long, device=device)
        self.facts = torch.zeros(3, *self.ids.shape, device=device)
        self.hidden: Tensor | None = None
        self.recent: list[tuple[Tensor, ...]] = []

    def add_tokens(self, states: Tensor, tokens: Tensor, facts: Tensor) -> None:
        """Take what :meth:`DecodingForward.draw_tokens` has drawn."""
        self.recent.append((tokens, facts, states) if self.keeps_hidden else (tokens, facts))

    def write_rows(self, rows: Tensor, end: int) -> None:
        """Write the tokens taken since the last call, up to a place, into rows of this storage, shape ``(N,)``."""
        tokens, facts, *states = map(torch.cat, zip(*self.recent, strict=True))
        part, self.recent = slice(end - len(tokens), end), []
        self.ids[:, part].index_copy_(0, rows, tokens.T)
        self.facts[..., part].index_copy_(1, rows, facts.permute(1, 2, 0))
        for block in states:
            if self.hidden is None:
                self.hidden = block.new_zeros(*self.ids.shape, block.shape[-1])
            self.hidden[:, part].index_copy_(0, rows, block.transpose(0, 1))

    def to_samples(self, stops: Tensor, limits: Tensor) -> Samples:
        """Return all tokens up to the first of ``stops``, shape ``(V,)``, or the limit of each row, ``(B,)``."""
        ids = self.ids[:-1]
        is_last = stops[ids] | (limits[:, None] <= torch.arange(1, ids.shape[1] + 1, device=ids.device))
        mask = is_last.cumsum(-1) <= is_last
        lengths = mask.sum(-1)
        is_cut, width = ~stops[ids.gather(1, lengths[:, None] - 1).squeeze(-1)], int(lengths.max())
        mask = mask[:, :width]
        logprobs, entropy, squares = self.facts[:, :-1, :width].where(mask, 0)
        samples = Samples(ids[:, :width].where(mask, 0), mask, logprobs, is_cut, entropy, squares)
        samples.hidden = self._pick_hidden(mask)
        return samples

    def to_episodes(self, turn: Tensor, is_cut: Tensor) -> Samples:
        """Return all tokens up to the last of each episode; those of the environment have no scores.

        Args:
            turn: Number of the turn of each token, -1 where the environment speaks, and behind the last, ``(B, T)``.
            is_cut: Whether each episode was cut, shape ``(B,)`` bool.

        """
        mask, width = turn >= 0, turn.shape[1]
        is_read = torch.arange(width, device=mask.device) < find_read_lengths(mask)[:, None]
        logprobs, entropy, squares = self.facts[:, :-1, :width].where(mask, 0)
        ids = self.ids[:-1, :width].where(is_read, 0)
        return Samples(ids, mask, logprobs, is_cut, entropy, squares, hidden=self._pick_hidden(mask), turn=turn)

    def _pick_hidden(self, mask: Tensor) -> Tensor | None:
        """Return the hidden states of sampled tokens, zero elsewhere; None if none are kept."""
        if self.hidden is None:
            return None
        return self.hidden[:-1, : mask.shape[1]].masked_fill_(~mask[..., None], 0)


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
    rows = fill_up_rows(torch.arange(len(context_numbers), device=context_numbers.device))
    states = reader.read_contexts(prompt_ids[contexts], context_of[rows], noise.shape[1])
    is_open = torch.arange(len(rows), device=context_numbers.device) < len(context_numbers)
    places = (rows + first_row).where(is_open, storage.discard_row)
    noise, limits, shortest, position = noise[rows], limits[rows], int(limits.min()), 0
    tokens, facts = draw(states, noise[:, 0])
    block = states[None], tokens[None], facts[None]
    while True:
        storage.add_tokens(*block)
        tokens, position = block[1], position + len(block[1])
        is_open = is_open & ~draw.stops[tokens].any(0)
        if position >= shortest:
            is_open = is_open & (limits > position)
        tokens, open_rows = tokens[-1], int(is_open.sum())
        if not open_rows:
            storage.write_rows(places, position)
            return
        if open_rows + (-open_rows % ROW_MULTIPLE) <= MAX_OPEN_SHARE * len(is_open):
            storage.write_rows(places, position)
            rows = fill_up_rows(is_open.nonzero().squeeze(-1))
            reader.keep_rows(rows)
            noise, limits, tokens, places = noise[rows], limits[rows], tokens[rows], places[rows]
            is_open = torch.arange(len(rows), device=rows.device) < open_rows
            places = places.where(is_open, storage.discard_row)
        block = reader.draw_tokens(draw, tokens, noise[:, position : position + reader.stop_interval])


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
        log_p = tempered_logits(states, self.head, self.temperature).log_softmax(-1)
        probabilities = log_p.exp()
        tokens = inverse_cdf(probabilities if self.token_filter is None else self.token_filter(probabilities), noise)
        logprobs = log_p.gather(1, tokens[:, None]).squeeze(1)
        # Not `vecdot`, which rounds its factors under autocast.
        squares, entropy = ((probabilities * factor).sum(-1) for factor in (probabilities, log_p))
        return tokens, torch.stack([logprobs, -entropy, squares])


def fill_up_rows(rows: Tensor) -> Tensor:
    """Append copies of the first row up to a multiple of :data:`ROW_MULTIPLE`."""
    return torch.cat([rows, rows[:1].expand(-len(rows) % ROW_MULTIPLE)])
