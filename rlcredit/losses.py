"""Losses: credit times importance ratio, each kind one class."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.functional.masked import masked_sum
from rlcredit.functional.processes import rank_and_world, summed

Denominator = Literal["token", "sequence", "constant"]


def token_weights(mask: Tensor, denominator: Denominator, constant: int | None = None) -> Tensor:
    r"""Return what each token counts in a loss, so that the loss is a weighted sum.

    ``token``: :math:`1 / \sum_i T_i`, every token alike (DAPO). ``sequence``: :math:`1 / (B\, T_i)`, every
    completion alike (GRPO). ``constant``: :math:`1 / (B\, C)`, free of length bias (Dr. GRPO, C being the budget).
    Counts are those of the batch over *all* processes; since data-parallel training averages gradients over processes,
    the mean count per process is the one to divide by.

    Args:
        mask: true on sampled tokens, shape ``(B, T)``; tokens whose advantage is zero count too.
        denominator: which of the three.
        constant: C, used by ``constant`` only.

    Returns:
        Weights, float32, shape ``(B, T)``, zero outside the mask.

    Example:
        >>> mask = torch.tensor([[True, True, True], [True, False, False]])
        >>> token_weights(mask, "token")[0], token_weights(mask, "sequence")[:, 0]
        (tensor([0.2500, 0.2500, 0.2500]), tensor([0.1667, 0.5000]))

    """
    rows = len(mask)
    if denominator == "token":
        count = summed(mask.sum().float()) / rank_and_world()[1]
    elif denominator == "sequence":
        count = rows * mask.sum(-1, keepdim=True).clamp(min=1)
    else:
        assert constant is not None
        count = torch.tensor(rows * constant, device=mask.device)
    return mask / count


class ImportanceSampling(torch.nn.Module):
    r"""Policy gradient corrected by the importance ratio, without clipping.

    .. math:: L = -\sum_{i,t} c_{i,t}\, \frac{\pi_\theta(o_{i,t})}{\pi_{old}(o_{i,t})}\, A_{i,t}

    with :math:`c` from :func:`token_weights`. On policy the ratio is one and the gradient is that of REINFORCE.

    Args:
        denominator: how tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: tokens per completion that ``constant`` divides by, usually ``sampling.max_tokens``; else None.

    """

    def __init__(self, denominator: Denominator = "token", constant: int | None = None) -> None:
        super().__init__()
        if (denominator == "constant") != (constant is not None) or (constant is not None and constant < 1):
            raise ValueError(
                f"ImportanceSampling expects a constant >= 1 with denominator `constant` and none with another, got "
                f"{denominator!r} and {constant}."
            )
        self.denominator: Denominator = denominator
        self.constant = constant

    def forward(self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logprobs: log pi of the sampled tokens with graph, shape ``(B, T)``.
            old_logprobs: log pi_old of the same tokens, shape ``(B, T)``.
            advantages: shape ``(B, T)``.
            mask: true on sampled tokens, shape ``(B, T)``.

        """
        ratio = (logprobs - old_logprobs).where(mask, 0).exp()
        return -masked_sum(token_weights(mask, self.denominator, self.constant) * ratio * advantages, mask)
