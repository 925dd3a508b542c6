"""A second adapter on the policy's base model, with an optimizer of its own, for critics and process rewards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from rlcredit.formulas.distributed import sum_over_processes


@dataclass
class SecondAdapter:
    """Weights that learn beside the policy's, and the moments of their optimizer; all of it is tensors.

    Attributes:
        weights: Factors of the adapter, and whatever else learns with them.
        moments: State of the optimizer; empty before the first step.

    """

    weights: list[Tensor]
    moments: dict[str, Any] = field(default_factory=dict)

    def improve(
        self, losses: Callable[[Sequence[Tensor]], Iterator[Tensor]], rate: float, largest_norm: float = 1.0
    ) -> Tensor:
        """Take one step of AdamW along the sum of some losses; rebinds the weights, so that copies stay as they are.

        Of several processes each one computes the losses of its own rows; gradients are summed over all.

        Args:
            losses: Function of the weights that yields losses one by one, each with a graph of its own.
            rate: Learning rate.
            largest_norm: Norm to which the gradient is clipped.

        Returns:
            Sum of the losses before the step, over all processes.

        """
        weights = [weight.detach().clone().requires_grad_() for weight in self.weights]
        optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
        if self.moments:
            optimizer.load_state_dict(self.moments)
        total = weights[0].new_zeros(())
        with torch.enable_grad():
            for loss in losses(weights):
                loss.backward()
                total = total + loss.detach()
        gradients = [sum_over_processes(torch.zeros_like(w) if w.grad is None else w.grad) for w in weights]
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        clip_grads_with_norm_(weights, largest_norm, get_total_norm(gradients))
        optimizer.step()
        self.weights = [weight.detach() for weight in weights]
        self.moments = optimizer.state_dict()
        return sum_over_processes(total)


def share_of_all_tokens(mask: Tensor) -> Tensor:
    """Return one over the number of true entries in the masks of all processes, a scalar."""
    return 1 / sum_over_processes(mask.sum().float()).clamp(min=1)
