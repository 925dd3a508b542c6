"""Continuations that are trained on: tokens decoded from a prefix of a completion, with credit of their own."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.formulas.groups import selected_places
from rlcredit.formulas.turns import find_read_lengths


class Continuations(NamedTuple):
    """Tokens drawn by the policy after prefixes of completions, N continuations of up to T' tokens.

    Attributes:
        rows: Row of the completion that a continuation leaves, ``(N,)`` int64.
        places: Number of tokens it shares with the completion, read ones included; it leaves before the sampled token
            at this place, ``(N,)`` int64.
        completion_ids: Token ids of its own, right-padded, ``(N, T')`` int64; with what an environment has said between
            its turns.
        mask: True on its own sampled tokens, end-of-sequence included, the first one among them, ``(N, T')`` bool.
        logprobs: Log pi_old of its own tokens, ``(N, T')`` float32.
        credit: Credit of its own tokens, ``(N, T')`` float32, weighed by the loss as the token of the completion is
            that stands where the continuation leaves.

    """

    rows: Tensor
    places: Tensor
    completion_ids: Tensor
    mask: Tensor
    logprobs: Tensor
    credit: Tensor

    def keep(self, selection: Tensor) -> "Continuations":
        """Return some of them; ``selection`` is boolean or holds their numbers."""
        return Continuations(*(values[selection] for values in self))

    def select_rows(self, row_numbers: Tensor, rows: int) -> "Continuations":
        """Return the continuations of some completions, rows numbered as in ``row_numbers``.

        Args:
            row_numbers: Rows that are selected, each once, shape ``(M,)``.
            rows: Number of rows there are, B.

        """
        new_rows = selected_places(self.rows, row_numbers, rows)
        return self._replace(rows=new_rows).keep(new_rows >= 0)

    def find_credited(self, verdict_mask: Tensor) -> Tensor:
        """Return the numbers of those with credit that leave judged completions; the others have no gradient.

        Args:
            verdict_mask: False on completions without a verdict, shape ``(B,)``.

        """
        row_mask = (self.credit.where(self.mask, 0) != 0).any(-1)
        return (row_mask & verdict_mask[self.rows]).nonzero().squeeze(-1)

    def join_prefixes(self, completion_ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return whole answers, the prefix of the completion and the tokens of the continuation, and their mask.

        Args:
            completion_ids: Token ids of the completions, shape ``(B, T)``.
            mask: True on their sampled tokens, shape ``(B, T)``.

        Returns:
            Token ids, and true on sampled tokens, shape ``(N, W)``, W being the longest answer or T, whichever is more.

        """
        lengths = find_read_lengths(self.mask)
        width = max([completion_ids.shape[1], *(self.places + lengths).tolist()])
        own_place = torch.arange(width, device=self.rows.device) - self.places[:, None]
        is_prefix, is_token = own_place < 0, own_place < lengths[:, None]

        def join_tokens(prefixes: Tensor, branches: Tensor) -> Tensor:
            prefixes = pad(prefixes, (0, width - prefixes.shape[1]))[self.rows]
            if not len(self.rows):
                return prefixes
            return prefixes.where(is_prefix, branches.gather(1, own_place.clamp(0, branches.shape[1] - 1)))

        tokens = join_tokens(completion_ids, self.completion_ids)
        return tokens.where(is_token, 0), join_tokens(mask, self.mask) & is_token


def concatenate_continuations(parts: Sequence[Continuations]) -> Continuations:
    """Return the continuations of several lists in their order, padded to the longest.

    Args:
        parts: Lists of continuations of one rollout, at least one.

    """
    width = max(part.mask.shape[1] for part in parts)

    def widen(values: Tensor) -> Tensor:
        return pad(values, (0, width - values.shape[1])) if values.ndim == 2 else values

    return Continuations(*(torch.cat([widen(tensor) for tensor in field]) for field in zip(*parts, strict=True)))
