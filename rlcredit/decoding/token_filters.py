"""Filters that an evaluation may apply before a token is drawn: top-k, top-p, greedy.

A filter changes which token is drawn and nothing else: log-probabilities and entropy that are reported stay those of
the policy at its temperature, over the whole vocabulary. Training has no filters, because a filtered sampler is not
the policy that is optimised; see :class:`rlcredit.decoding.sampling.Sampling`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from rlcredit.formulas.running_sums import running_sums


class TokenFilter(Protocol):
    """A filter that removes tokens."""

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return probabilities, shape ``(N, V)``, zero where a token is left out and unchanged elsewhere."""
        ...


@dataclass(frozen=True)
class TopK:
    """Keep the k likeliest tokens, and those as likely as the last of them.

    Args:
        k: Number of tokens kept, at least 1; the size of the vocabulary or more changes nothing.

    Example:
        >>> import torch
        >>> TopK(2)(torch.tensor([[0.5, 0.2, 0.3]]))
        tensor([[0.5000, 0.0000, 0.3000]])

    """

    k: int

    def __post_init__(self) -> None:
        """Refuse a k that keeps nothing."""
        if self.k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.k}. Leave it out to keep every token.")

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return what is kept; see :class:`TokenFilter`."""
        least = probabilities.topk(min(self.k, probabilities.shape[-1]), dim=-1).values[:, -1:]
        return probabilities.where(probabilities >= least, 0)


@dataclass(frozen=True)
class TopP:
    """Keep the likeliest tokens until their share of the probability reaches p; of equals, those of lower number.

    The nucleus of Holtzman et al. (2020, arXiv:1904.09751). Behind another filter, shares are of what that one keeps.

    Args:
        p: Probability mass kept, above 0 and at most 1; 1 changes nothing. The likeliest token is always kept.

    Example:
        >>> import torch
        >>> TopP(0.6)(torch.tensor([[0.5, 0.2, 0.3]]))
        tensor([[0.5000, 0.0000, 0.3000]])

    """

    p: float

    def __post_init__(self) -> None:
        """Refuse a value outside (0, 1]."""
        if not 0 < self.p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.p}.")

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return what is kept; see :class:`TokenFilter`."""
        if self.p == 1:
            return probabilities
        falling, order = probabilities.double().sort(dim=-1, descending=True, stable=True)
        above = running_sums(falling) - falling  # probability of the tokens in front
        kept = above < self.p * falling.sum(-1, keepdim=True)
        kept[:, 0] = True
        return probabilities.where(kept.gather(1, order.argsort(-1)), 0)


@dataclass(frozen=True)
class Greedy:
    """Keep the likeliest token; of equals, the one of the lowest number.

    Example:
        >>> import torch
        >>> Greedy()(torch.tensor([[0.2, 0.4, 0.4]]))
        tensor([[0.0000, 0.4000, 0.0000]])

    """

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return what is kept; see :class:`TokenFilter`."""
        # Not `argmax`, which may return any of several equals.
        likeliest = (probabilities == probabilities.amax(-1, keepdim=True)).int()
        return probabilities.where((likeliest.cumsum(-1) == 1) & (likeliest == 1), 0)


@dataclass(frozen=True)
class FilterChain:
    """Apply filters one after the other, in the order of transformers and vLLM: top-k before top-p.

    Args:
        filters: Filters in the order they are applied; an empty list keeps every token.

    """

    filters: Sequence[TokenFilter]

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return what all of them keep; see :class:`TokenFilter`."""
        for each in self.filters:
            probabilities = each(probabilities)
        return probabilities


def make_token_filter(top_k: int | None = None, top_p: float | None = None, greedy: bool = False) -> TokenFilter | None:
    """Return the filter that the usual three arguments describe; None if every token may be drawn.

    Args:
        top_k: Number of tokens kept, see :class:`TopK`; all if None.
        top_p: Probability mass kept, see :class:`TopP`; all if None.
        greedy: Whether to keep the likeliest token only.

    Raises:
        ValueError: a value that keeps nothing, or ``greedy`` beside another filter.

    """
    if greedy and (top_k is not None or top_p is not None):
        raise ValueError("greedy keeps one token, so that top_k and top_p have nothing to leave out. Remove one.")
    chosen = [*([TopK(top_k)] if top_k is not None else []), *([TopP(top_p)] if top_p is not None else [])]
    return Greedy() if greedy else FilterChain(chosen) if chosen else None
