"""A second adapter on the policy's base model, with an optimizer of its own, for critics and process rewards."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from rlcredit.credit.critic import make_noise
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import sum_over_processes

PartLoss = Callable[[Tensor, Tensor, Sequence[Tensor]], Tensor]
"""Loss of some rows: their numbers, shape ``(N,)``, the states that predict their tokens, ``(N, T', D)``, and the other
weights."""


@dataclass
class SecondAdapter:
    """Weights that learn beside the policy's, and the moments of their optimizer; all of it is tensors.

    Attributes:
        factors: Factors of the adapter, layer by layer.
        others: Whatever else learns with them.
        moments: State of the optimizer; empty before the first step.

    """

    factors: list[Tensor]
    others: list[Tensor] = field(default_factory=list)
    moments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def restore_or_create(
        cls, state: Mapping[str, Any], operator: CreditOperator, rollout: Rollout, outputs: int = 0
    ) -> "SecondAdapter":
        """Return the adapter that an operator holds, or a fresh one that changes nothing yet.

        Args:
            state: Attributes of an adapter; empty if there is none.
            operator: Operator, whose name and seed name the noise of a fresh one.
            rollout: Rollout with the policy.
            outputs: Outputs of a linear head on the states, its weights and biases zero; no head if 0.

        """
        if state:
            return cls(**state)
        size, device = rollout.lookahead.hidden_size, rollout.mask.device
        head = [torch.zeros(size, outputs, device=device), torch.zeros(outputs, device=device)] if outputs else []
        return cls(rollout.lookahead.create_adapter(make_noise(operator, rollout)), head)

    def iterate_states(self, rollout: Rollout) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows and the states that predict their tokens under this adapter, without graph."""
        for parts in rollout.lookahead.iterate_states(rollout, self.factors):
            yield from parts

    def improve(self, rollout: Rollout, compute_loss: PartLoss, rate: float, largest_norm: float = 1.0) -> Tensor:
        """Take one step of AdamW on the summed losses of all rows; rebinds weights and moments, so that copies stay.

        Of several processes each one computes the losses of its own rows; gradients are summed over all.

        Args:
            rollout: Rollout that is learned from.
            compute_loss: Loss of some rows.
            rate: Learning rate.
            largest_norm: Norm to which the gradient is clipped.

        Returns:
            Sum of the losses before the step, over all processes.

        """
        weights = [weight.detach().clone().requires_grad_() for weight in (*self.factors, *self.others)]
        factors, extra_weights = weights[: len(self.factors)], weights[len(self.factors) :]
        optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
        if self.moments:
            optimizer.load_state_dict(copy.deepcopy(self.moments))  # which it would change in place
        total = weights[0].new_zeros(())
        with torch.enable_grad():
            for parts in rollout.lookahead.iterate_states(rollout, factors):
                loss = torch.stack([compute_loss(rows, states, extra_weights) for rows, states in parts]).sum()
                loss.backward()
                total = total + loss.detach()
        gradients = [sum_over_processes(torch.zeros_like(w) if w.grad is None else w.grad) for w in weights]
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        clip_grads_with_norm_(weights, largest_norm, get_total_norm(gradients))
        optimizer.step()
        self.factors, self.others = [f.detach() for f in factors], [o.detach() for o in extra_weights]
        self.moments = optimizer.state_dict()
        return sum_over_processes(total)


def share_of_all(mask: Tensor) -> Tensor:
    """Return one over the number of true entries in all processes, zero if there are none; ``counted`` is boolean."""
    number = sum_over_processes(mask.sum().float())
    return (1 / number).where(number > 0, 0)
