"""The pass of few operations on an accelerator: recorded as a graph, and replayed token by token."""

import torch
from torch import Tensor

from rlcredit.decoding.decoding_loop import TokenSampler
from rlcredit.decoding.fused_forward import FusedForward

KEY_BLOCK = 128
"""Tokens after which the graph is recorded anew, with as many more keys: a replay reads them all, masked or not."""

STOP_INTERVAL = 16
"""Tokens after which one waits for the accelerator and looks which rows have ended."""


class GraphedForward(FusedForward):
    """A policy that continues contexts token by token, each token one replay of a recorded graph.

    A decoder of thirty layers launches some hundred operations a token, which takes longer than they do. A graph fixes
    all shapes: attention reads a block of keys at a time, of which those that are not there yet are masked. It draws
    the token, too, and writes it where the next replay reads it.
    """

    stop_interval: int = STOP_INTERVAL
    graph: torch.cuda.CUDAGraph | None = None
    draw: TokenSampler | None = None

    def _read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        self.graph = None  # what it replays is bound to the cache of the contexts before
        states = super()._read_contexts(prompt_ids, context_numbers, room + -room % KEY_BLOCK)
        self.bias[..., self.column :] = torch.finfo(self.bias.dtype).min
        self._clear_room()
        return states

    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row, shape ``(B,)``; return the last hidden states, shape ``(B, D)``."""
        self._write_inputs(tokens, tokens.new_zeros(len(tokens), 1), None)
        self._replay_token()
        return self.block[0][0].clone()

    def draw_tokens(self, draw: TokenSampler, tokens: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Take the last token of every row and draw those that follow; a filter of tokens stays outside the graph."""
        if draw.token_filter is not None:
            return super().draw_tokens(draw, tokens, noise)
        self._write_inputs(tokens, noise, draw)
        for _ in range(noise.shape[1]):
            self._replay_token()
        return tuple(storage[: noise.shape[1]].clone() for storage in self.block)

    def _write_inputs(self, tokens: Tensor, noise: Tensor, draw: TokenSampler | None) -> None:
        """Write tokens and noise to where the graph reads them, or begin anew with other rows or another sampler."""
        if self.graph is None or draw is not self.draw:
            self.graph, self.draw = None, draw
            self.tokens, self.noise, self.step = tokens.clone(), noise.new_zeros(noise.shape[::-1]), tokens.new_zeros(1)
            ids = torch.zeros_like(self.noise, dtype=torch.long)
            facts = torch.zeros(len(ids), 3, len(tokens), device=tokens.device)
            self.block = self.embedding.new_zeros(*ids.shape, self.embedding.shape[1]), ids, facts
        self.tokens.copy_(tokens)
        self.noise[: noise.shape[1]] = noise.T
        self.step.zero_()

    def _replay_token(self) -> None:
        if self.graph is None or self.column == self.reach:
            self._record_graph()
        assert self.graph is not None
        self.graph.replay()
        self.column += 1

    def keep_rows(self, rows: Tensor) -> None:
        """Keep some rows, shape ``(N,)``; a row may come twice."""
        self.graph = None
        super().keep_rows(rows)
        self._clear_room()

    def _clear_room(self) -> None:
        """Set keys and values to zero that are not there yet: a weight of zero does not hide what is not a number."""
        for cache in self.cache:
            cache.clear_room(self.column)

    def find_reach(self) -> int:
        """Return the number of keys that a graph reads if it is recorded now."""
        return min(self.column + KEY_BLOCK - self.column % KEY_BLOCK, self.bias.shape[-1])

    def _record_graph(self) -> None:
        """Record a token's operations, up to the next block of keys."""
        self.graph = self.outputs = None  # what an earlier graph used is free for this one
        self.reach = self.find_reach()
        self.place = self.step.new_full((1,), self.column)
        side_stream, main_stream = torch.cuda.Stream(), torch.cuda.current_stream()
        side_stream.wait_stream(main_stream)
        with torch.cuda.stream(side_stream):
            self._compute_token()  # libraries prepare themselves at their first call, which cannot be recorded
        main_stream.wait_stream(side_stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.outputs = self._compute_token()
            self._store_token(self.outputs)
        self.graph = graph

    def _compute_token(self) -> tuple[Tensor, ...]:
        """Return the last hidden states behind :attr:`tokens`, and what is drawn; computed twice, they are the same."""
        with torch.autocast(self.tokens.device.type, enabled=False):
            self.bias.index_fill_(-1, self.place, 0)
            states = self.read_token(self.tokens, self.bias[..., : self.reach], self.place)
            if self.draw is None:
                return (states,)
            return (states, *self.draw(states, self.noise.index_select(0, self.step)[0]))

    def _store_token(self, outputs: tuple[Tensor, ...]) -> None:
        """Keep states and draws in their storage, and go on to the next token."""
        for storage, output in zip(self.block, outputs, strict=False):
            storage.index_copy_(0, self.step, output[None])
        if self.draw is not None:
            self.tokens.copy_(outputs[1])
        for counter in (self.step, self.place, self.places):
            counter.add_(1)
