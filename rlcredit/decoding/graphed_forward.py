"""The pass of few operations on an accelerator: recorded as a graph, and replayed token by token."""

import torch
from torch import Tensor

from rlcredit.decoding.fused_forward import FusedForward

KEY_BLOCK = 128
"""Tokens after which the graph is recorded anew, with as many more keys: a replay reads them all, masked or not."""


class GraphedForward(FusedForward):
    """A policy that continues contexts token by token, each token one replay of a recorded graph.

    A decoder of thirty layers launches about a thousand operations a token, which takes longer than they do. A graph
    fixes all shapes: attention reads a block of keys at a time, of which those that are not there yet are masked.
    """

    graph: torch.cuda.CUDAGraph | None = None

    def _read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        self.graph = None  # what it replays is bound to the cache of the contexts before
        states = super()._read_contexts(prompt_ids, context_numbers, room + -room % KEY_BLOCK)
        self.bias[..., self.column :] = torch.finfo(self.bias.dtype).min
        self._clear_room()
        return states

    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row, shape ``(B,)``; return the last hidden states, shape ``(B, D)``."""
        if self.graph is None or self.column == self.reach:
            self._record_graph(tokens)
        assert self.graph is not None
        self.tokens.copy_(tokens)
        self.graph.replay()
        self.column += 1
        return self.hidden.clone()

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

    def _record_graph(self, tokens: Tensor) -> None:
        """Record a token's operations, up to the next block of keys."""
        self.graph, self.hidden = None, tokens  # what an earlier graph used is free for this one
        self.reach = self.find_reach()
        self.tokens, self.place = tokens.clone(), torch.tensor([self.column], device=tokens.device)
        side_stream, main_stream = torch.cuda.Stream(), torch.cuda.current_stream()
        side_stream.wait_stream(main_stream)
        with torch.cuda.stream(side_stream):
            self._compute_token()  # libraries prepare themselves at their first call, which cannot be recorded
        main_stream.wait_stream(side_stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.hidden = self._compute_token()
            self.place += 1
            self.places += 1
        self.graph = graph

    def _compute_token(self) -> Tensor:
        """Return the last hidden states behind :attr:`tokens`; computed twice, they are the same."""
        with torch.autocast(self.tokens.device.type, enabled=False):
            self.bias.index_fill_(-1, self.place, 0)
            return self.read_token(self.tokens, self.bias[..., : self.reach], self.place)
