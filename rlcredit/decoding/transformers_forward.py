"""Contexts computed and continued by the model's own forward pass and cache: for every architecture."""

from typing import Any

import torch
from torch import Tensor

from rlcredit.decoding.decoding_loop import DecodingForward
from rlcredit.policy.policy import Policy


class TransformersForward(DecodingForward):
    """A policy that has read some contexts and continues them token by token.

    Args:
        policy: Policy of any architecture.

    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.cache: Any = None

    def read_contexts(self, prompt_ids: Tensor, context_numbers: Tensor, room: int) -> Tensor:
        """Read contexts once each; return the last hidden state of every row, shape ``(B, D)``.

        Args:
            prompt_ids: Token ids of the contexts, left-padded, shape ``(P, L)``.
            context_numbers: Number of the context that each row continues, shape ``(B,)``.
            room: Tokens that may follow; the cache grows as it must.

        """
        mask = self.policy.prompt_mask(prompt_ids)
        states, self.cache = self.policy.hidden_states(prompt_ids, mask, use_cache=True)
        self.mask = mask[context_numbers]
        self.cache.batch_select_indices(context_numbers)
        return states[context_numbers, -1]

    def append_tokens(self, tokens: Tensor) -> Tensor:
        """Take one more token in every row, shape ``(B,)``; return the last hidden states, shape ``(B, D)``."""
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], -1)
        states, self.cache = self.policy.hidden_states(tokens[:, None], self.mask, self.cache, use_cache=True)
        return states[:, -1]

    def keep_rows(self, rows: Tensor) -> None:
        """Keep some rows, shape ``(N,)``; a row may come twice."""
        self.cache.batch_select_indices(rows)
        self.mask = self.mask[rows]
