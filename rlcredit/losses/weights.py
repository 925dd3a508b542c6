"""The weight of each token in a loss."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.functional.processes import rank_and_world_size, sum_over_processes

Denominator = Literal["token", "sequence", "constant"]


def token_weights(mask: Tensor, denominator: Denominator, constant: int | None = None) -> Tensor:
    r"""Return the weight of each token, so that the loss is a weighted sum.

    ``token``: :math:`1 / \sum_i T_i`, every token alike (DAPO). ``sequence``: :math:`1 / (B\, T_i)`, every
    completion alike (GRPO). ``constant``: :math:`1 / (B\, C)`, free of length bias (Dr. GRPO, C being the budget).
    Counts are those of the batch over *all* processes; since data-parallel training averages gradients over processes,
    the mean count per process is the one to divide by.

    Args:
        mask: true on sampled tokens, shape ``(B, T)``; tokens whose advantage is zero count too, and so do rows without
            any token. Rows of completions that were not judged are not among the B.
        denominator: which of the three.
        constant: C, used by ``constant`` only.

    Returns:
        Weights, float32, shape ``(B, T)``, zero outside the mask.

    Example:
        >>> mask = torch.tensor([[True, True, True], [True, False, False]])
        >>> token_weights(mask, "token")[0], token_weights(mask, "sequence")[:, 0]
        (tensor([0.2500, 0.2500, 0.2500]), tensor([0.1667, 0.5000]))

    """
    if denominator == "token":
        return mask / (sum_over_processes(mask.sum().float()).clamp(min=1) / rank_and_world_size()[1])
    rows = sum_over_processes(torch.tensor(float(len(mask)), device=mask.device)) / rank_and_world_size()[1]
    if denominator == "sequence":
        return mask / (rows * mask.sum(-1, keepdim=True).clamp(min=1))
    assert constant is not None
    return mask / (rows * constant)
