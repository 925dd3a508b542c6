"""Tokens that might have been drawn in place of the sampled ones: what they lead to, and what credit they get."""

from typing import NamedTuple

import torch
from torch import Tensor


class Alternatives(NamedTuple):
    """Tokens that the policy might have drawn in place of sampled ones, N of them.

    Attributes:
        rows: Row of the completion, ``(N,)`` int64.
        places: Place of the token that was drawn instead, ``(N,)`` int64.
        tokens: Token id of the alternative, ``(N,)`` int64.
        logprobs: Log pi_old of the alternative, ``(N,)`` float32.
        hidden: Last hidden state behind the alternative, ``(N, D)``.

    """

    rows: Tensor
    places: Tensor
    tokens: Tensor
    logprobs: Tensor
    hidden: Tensor


class WeightedTokens(NamedTuple):
    """Tokens that were not sampled and have credit of their own, N of them.

    Attributes:
        rows: Row of the completion, ``(N,)`` int64.
        places: Place at which the token might have been drawn, ``(N,)`` int64.
        tokens: Token id, ``(N,)`` int64.
        logprobs: Log pi_old of the token, ``(N,)`` float32.
        weights: Credit, ``(N,)`` float32, averaged by the loss as the advantage of the token sampled there is.

    """

    rows: Tensor
    places: Tensor
    tokens: Tensor
    logprobs: Tensor
    weights: Tensor

    def keep(self, where: Tensor) -> "WeightedTokens":
        """Return some of them; ``where`` is boolean or holds their numbers."""
        return WeightedTokens(*(values[where] for values in self))

    def select_rows(self, chosen: Tensor, rows: int) -> tuple[Tensor, "WeightedTokens"]:
        """Return the numbers of those of some completions, and those, rows renumbered to their places in ``chosen``.

        Args:
            chosen: Rows that are selected, each once, shape ``(M,)``.
            rows: Number of rows there are, B.

        """
        place_of = torch.full((rows,), -1, device=self.rows.device)
        place_of[chosen] = torch.arange(len(chosen), device=self.rows.device)
        new_rows = place_of[self.rows]
        numbers = (new_rows >= 0).nonzero().squeeze(-1)
        return numbers, self._replace(rows=new_rows).keep(numbers)


class Credit(NamedTuple):
    """The credit of a rollout: that of its sampled tokens, and that of tokens in their place.

    Attributes:
        advantages: Advantage of each sampled token, ``(B, T)`` float32.
        alternatives: Other tokens with credit; None if nothing gave them any.

    """

    advantages: Tensor
    alternatives: WeightedTokens | None = None

    def select_rows(self, chosen: Tensor) -> "Credit":
        """Return the credit of some completions, in the order given."""
        others = self.alternatives
        return Credit(
            self.advantages[chosen], None if others is None else others.select_rows(chosen, len(self.advantages))[1]
        )

    def first_rows(self, number: int) -> "Credit":
        """Return the credit of the first completions."""
        return self.select_rows(torch.arange(number, device=self.advantages.device))

    def keep_rows(self, kept: Tensor) -> "Credit":
        """Return the same credit for some completions and none for the others; ``kept`` is ``(B,)`` bool."""
        others = self.alternatives
        return Credit(
            self.advantages.where(kept[:, None], 0), None if others is None else others.keep(kept[others.rows])
        )

    def credited_rows(self, mask: Tensor) -> Tensor:
        """Return the rows on which some token has credit, shape ``(B,)`` bool; the others have no gradient."""
        credited = (self.advantages.where(mask, 0) != 0).any(-1)
        if self.alternatives is None:
            return credited
        return credited.index_fill(0, self.alternatives.rows[self.alternatives.weights != 0], True)
