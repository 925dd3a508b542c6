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

LEAVE = 0.75
"""Finished rows leave once at most this share of the batch is unfinished; each time the cache is copied."""


class DecodingForward(Protocol):
    """Reads contexts and continues them; see :class:`rlcredit.decoding.fused_forward.FusedForward`."""

    def read_contexts(self, prompt_ids: Tensor, of: Tensor, room: int) -> Tensor:
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

    def store_tokens(self, places: Tensor, hidden: Tensor, tokens: Tensor, *facts: Tensor) -> None:
        """Keep tokens with log-probability, entropy and sum of squares, all ``(N,)``; ``hidden`` is ``(N, D)``."""
        if self.keeps_hidden:
            self.hidden.append(hidden)
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
        last, width = ids.gather(1, mask.sum(-1, keepdim=True) - 1).squeeze(-1), int(mask.any(0).sum())
        logprobs, entropy, squares = facts[:, :size].view(3, *self.shape)[:, :, :width]
        samples = Samples(ids[:, :width], mask[:, :width], logprobs, ~stops[last], entropy, squares)
        if self.keeps_hidden:
            drawn_from = torch.cat(self.hidden)
            hidden = drawn_from.new_zeros(size + 1, drawn_from.shape[1]).index_copy_(0, places, drawn_from)
            samples.hidden = hidden[:size].view(*self.shape, -1)[:, :width]
        return samples


def decode_rows(
    reader: DecodingForward,
    draw: "TokenSampler",
    prompt_ids: Tensor,
    of: Tensor,
    noise: Tensor,
    limits: Tensor,
    drawn: DrawnTokens,
    first: int,
) -> None:
    """Draw tokens in every row until the last row has ended.

    Args:
        reader: Forward pass of the policy over the contexts.
        draw: Sampler that chooses the tokens.
        prompt_ids: Contexts, left-padded, shape ``(P, L)``.
        of: Number of the context that each row continues, shape ``(B,)``.
        noise: Uniforms in [0, 1), one per token, shape ``(B, T)``.
        limits: Most tokens that each row may have, shape ``(B,)``.
        drawn: Storage for the tokens drawn.
        first: Row of that storage at which the first row is written.

    """
    contexts, context_of = torch.unique(of, return_inverse=True)
    rows = _fill_up_rows(torch.arange(len(of), device=of.device))
    hidden = reader.read_contexts(prompt_ids[contexts], context_of[rows], noise.shape[1])
    alive = torch.arange(len(rows), device=of.device) < len(of)
    starts = drawn.row_starts(rows + first).where(alive, drawn.discard_start)
    noise, limits, shortest = noise[rows], limits[rows], int(limits.min())
    for position in range(noise.shape[1]):
        tokens, *facts = draw(hidden, noise[:, position])
        drawn.store_tokens(starts + position, hidden, tokens, *facts)
        finished = draw.stops[tokens] if position + 1 < shortest else draw.stops[tokens] | (limits <= position + 1)
        alive = alive & ~finished
        unfinished = int(alive.sum())
        if not unfinished:
            return
        if unfinished + (-unfinished % ROW_MULTIPLE) <= LEAVE * len(alive):
            kept = _fill_up_rows(alive.nonzero().squeeze(-1))
            reader.keep_rows(kept)
            noise, limits, starts, tokens = noise[kept], limits[kept], starts[kept], tokens[kept]
            alive = torch.arange(len(kept), device=of.device) < unfinished
        starts = starts.where(alive, drawn.discard_start)
        hidden = reader.append_tokens(tokens)


class TokenSampler:
    """Draw tokens from the tempered policy with given noise.

    Args:
        head: Output embedding, shape ``(V, D)``.
        temperature: Sampling temperature T.
        stop_ids: Tokens that end a completion.
        kept: Filter of the tokens that may be drawn, in an evaluation; all tokens if None.

    """

    def __init__(self, head: Tensor, temperature: float, stop_ids: Tensor, kept: TokenFilter | None = None) -> None:
        self.head, self.temperature, self.kept = head, temperature, kept
        self.stops = torch.zeros(len(head), dtype=torch.bool, device=head.device).index_fill_(0, stop_ids, True)

    def __call__(self, hidden: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return token, log-probability, entropy and sum of squared probabilities, all ``(N,)``.

        Args:
            hidden: Last hidden states, shape ``(N, D)``.
            noise: Uniforms, shape ``(N,)``.

        """
        log_p = tempered_logits(hidden, self.head, self.temperature).log_softmax(-1)
        probabilities = log_p.exp()
        tokens = inverse_cdf(probabilities if self.kept is None else self.kept(probabilities), noise)
        logprobs, squares = (
            log_p.gather(1, tokens[:, None]).squeeze(1),
            torch.linalg.vecdot(probabilities, probabilities),
        )
        return tokens, logprobs, -torch.linalg.vecdot(probabilities, log_p), squares


def _fill_up_rows(rows: Tensor) -> Tensor:
    """Append copies of the first row up to a multiple of :data:`ROW_MULTIPLE`."""
    return torch.cat([rows, rows[:1].expand(-len(rows) % ROW_MULTIPLE)])
