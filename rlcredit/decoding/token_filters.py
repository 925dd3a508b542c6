"""Filter that an evaluation may apply before a token is drawn: top-k, top-p, greedy.

A filter changes which token is drawn and nothing else: log-probabilities and entropy that are reported stay those of
the policy at its temperature, over the whole vocabulary. Training has no filter, because a filtered sampler is not
the policy that is optimised; see :class:`rlcredit.decoding.sampling.Sampling`.
"""

from dataclasses import dataclass

from torch import Tensor

from rlcredit.formulas.running_sums import running_sums


@dataclass(frozen=True)
class TokenFilter:
    """Keep likely tokens, in the order of transformers and vLLM: top-k before top-p.

    Args:
        top_k: Number of likeliest tokens kept, and with them those as likely as the last; all if None.
        top_p: Share of the probability, above 0 and at most 1, which the likeliest tokens are kept to reach; of
            equals, those of lower number, and always the first. It is the nucleus of Holtzman et al. (2020,
            arXiv:1904.09751), of what top-k keeps; all if None.
        greedy: Whether to keep the likeliest token only; of equals, the one of the lowest number.

    Example:
        >>> import torch
        >>> TokenFilter(top_p=0.6)(torch.tensor([[0.5, 0.2, 0.3]]))
        tensor([[0.5000, 0.0000, 0.3000]])

    """

    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False

    def __post_init__(self) -> None:
        """Refuse a value that keeps nothing, and ``greedy`` beside another."""
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}. Leave it out to keep every token.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}.")
        if self.greedy and (self.top_k is not None or self.top_p is not None):
            raise ValueError("greedy keeps one token, so that top_k and top_p have nothing to leave out. Remove one.")

    @property
    def keeps_all(self) -> bool:
        """Whether every token may be drawn."""
        return not self.greedy and self.top_k is None and self.top_p is None

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Return probabilities, shape ``(N, V)``, zero where a token is left out and unchanged elsewhere."""
        if self.greedy:
            # Not `argmax`, which may return any of several equals.
            likeliest = (probabilities == probabilities.amax(-1, keepdim=True)).int()
            return probabilities.where((likeliest.cumsum(-1) == 1) & (likeliest == 1), 0)
        if self.top_k is not None:
            smallest = probabilities.topk(min(self.top_k, probabilities.shape[-1]), dim=-1).values[:, -1:]
            probabilities = probabilities.where(probabilities >= smallest, 0)
        if self.top_p is None or self.top_p == 1:
            return probabilities
        falling, order = probabilities.double().sort(dim=-1, descending=True, stable=True)
        mass_in_front = running_sums(falling) - falling
        is_kept = mass_in_front < self.top_p * falling.sum(-1, keepdim=True)
        is_kept[:, 0] = True
        return probabilities.where(is_kept.gather(1, order.argsort(-1)), 0)
