"""Tokens that might have been drawn in place of the sampled ones: what they lead to, and what credit they get."""

from typing import NamedTuple

import torch
from torch import Tensor

from rlcredit.credit.continuations import Continuations
from rlcredit.formulas.groups import selected_places


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

    def keep(self, selection: Tensor) -> "WeightedTokens":
        """Return some of them; ``selection`` is boolean or holds their numbers."""
        return WeightedTokens(*(values[selection] for values in self))

    def select_rows(self, row_numbers: Tensor, rows: int) -> tuple[Tensor, "WeightedTokens"]:
        """Return the numbers of the tokens of some completions, and the tokens, rows numbered as in ``row_numbers``.

        Args:
            row_numbers: Rows that are selected, each once, shape ``(M,)``.
            rows: Number of rows there are, B.

        """
        new_rows = selected_places(self.rows, row_numbers, rows)
        numbers = (new_rows >= 0).nonzero().squeeze(-1)
        return numbers, self._replace(rows=new_rows).keep(numbers)


class Credit(NamedTuple):
    """The credit of a rollout: that of its sampled tokens, of tokens in their place, and of continuations.

    Attributes:
        advantages: Advantage of each sampled token, ``(B, T)`` float32.
        alternatives: Other tokens with credit; None if nothing gave them any.
        continuations: Continuations with credit; None if nothing gave them any.

    """

    advantages: Tensor
    alternatives: WeightedTokens | None = None
    continuations: Continuations | None = None

    def select_rows(self, row_numbers: Tensor) -> "Credit":
        """Return the credit of some completions, in the order given."""
        rows, tokens, branches = len(self.advantages), self.alternatives, self.continuations
        return Credit(
            self.advantages[row_numbers],
            None if tokens is None else tokens.select_rows(row_numbers, rows)[1],
            None if branches is None else branches.select_rows(row_numbers, rows),
        )

    def first_rows(self, number: int) -> "Credit":
        """Return the credit of the first completions."""
        return self.select_rows(torch.arange(number, device=self.advantages.device))

    def keep_rows(self, row_mask: Tensor) -> "Credit":
        """Return the same credit for some completions and none for the others; ``row_mask`` is ``(B,)`` bool."""
        tokens, branches = self.alternatives, self.continuations
        return Credit(
            self.advantages.where(row_mask[:, None], 0),
            None if tokens is None else tokens.keep(row_mask[tokens.rows]),
            None if branches is None else branches.keep(row_mask[branches.rows]),
        )

    def credited_rows(self, mask: Tensor) -> Tensor:
        """Return the rows on which some token has credit, shape ``(B,)`` bool; the others have no gradient.

        Continuations are no rows: they have gradients whether or not the completion that they leave has one.
        """
        row_mask = (self.advantages.where(mask, 0) != 0).any(-1)
        if self.alternatives is None:
            return row_mask
        return row_mask.index_fill(0, self.alternatives.rows[self.alternatives.weights != 0], True)
