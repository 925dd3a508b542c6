"""The values of an update before the optimizer steps, and the first fault in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlcredit.exits import NotFinite, PolicyMismatch
from rlcredit.functional.finite import find_non_finite_name
from rlcredit.guards.faults import find_sampler_fault, find_value_fault
from rlcredit.rollout import Rollout


@dataclass
class UpdateValues:
    """The values that an update computes before the optimizer steps.

    Attributes:
        step: optimizer steps taken before.
        rollout: the mini-batch, with the log-probabilities under the weights as they are.
        entropy: of the policy that is trained, shape ``(B, T)``.
        loss: scalar.
        loss_name: class of the loss.
        metrics: by :func:`rlcredit.metrics.policy_metrics`.
        norm: of the gradient, before it is clipped; unknown before the backward pass.

    """

    step: int
    rollout: Rollout
    entropy: Tensor
    loss: Tensor
    loss_name: str
    metrics: Mapping[str, Tensor]
    norm: Tensor | None = None

    def find_fault(
        self, weights: Mapping[str, Tensor], scaled: bool, tolerance: float
    ) -> NotFinite | PolicyMismatch | None:
        """Return the first thing that is wrong: one exchange with the device if nothing is.

        Args:
            weights: those that learn, with their gradients.
            scaled: whether a gradient scaler is used, which skips steps that overflow.
            tolerance: see :func:`find_sampler_fault`; infinite where the data is not on policy.

        """
        assert self.norm is not None
        scores = torch.stack([self.rollout.logprobs.detach(), self.entropy])
        wrong = torch.stack([~self.loss.isfinite(), ~self.norm.isfinite(), (~scores.isfinite()).any()])
        divergence = self.metrics["train/kl_sampler"]
        loss, gradient, forward, divergence = torch.stack([*wrong.to(divergence), divergence]).tolist()
        if (loss or forward) and (fault := self._forward_fault()):
            return fault
        if gradient and not scaled:
            return self._gradient_fault(weights)
        return find_sampler_fault(self.step, divergence, self.metrics, tolerance)

    def _forward_fault(self) -> NotFinite | None:
        step, rollout, mask = self.step, self.rollout, self.rollout.mask
        scoring = "the scoring forward"
        return (
            find_value_fault(step, "a callback outside the stack", "advantages", rollout.advantages, mask)
            or find_value_fault(step, scoring, "log-probabilities", rollout.logprobs.detach(), mask)
            or find_value_fault(step, scoring, "entropy values", self.entropy, mask)
            or self._loss_fault()
        )

    def _loss_fault(self) -> NotFinite | None:
        if self.loss.isfinite():
            return None  # only masked values are not finite
        return NotFinite(
            f"Step {self.step}: the loss {self.loss_name} is {self.loss.item()}, from finite credit and "
            "log-probabilities. Bound its ratios, or lower the learning rate."
        )

    def _gradient_fault(self, weights: Mapping[str, Tensor]) -> NotFinite:
        assert self.norm is not None
        gradients = ((name, weight.grad) for name, weight in weights.items() if weight.grad is not None)
        first = find_non_finite_name(gradients)
        which = f"that of {first} first" if first else "though every weight's gradient is finite: the squares overflow"
        return NotFinite(
            f"Step {self.step}: the backward pass gives a gradient of norm {self.norm.item()}, {which}. The loss is "
            f"finite ({self.loss.item():.4g}). Lower the learning rate, or pass over such steps with "
            "model.skip_not_finite."
        )

    def summarise_gradients(self, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Return the numbers that a post-mortem keeps: the loss, and the norm of each weight's gradient."""
        gradients = {name: weight.grad.norm().item() for name, weight in weights.items() if weight.grad is not None}
        norm = None if self.norm is None else self.norm.item()
        return {"loss": self.loss.item(), "gradient_norm": norm, "gradient_norms": gradients}
