"""Checks that stop a run: NaN or infinity in rollouts, updates and weights, and a sampler that is another policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from rlcredit.base.exit_status import NotFinite, PolicyMismatch
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.value_fault import find_value_fault
from rlcredit.formulas.finite import find_non_finite_name
from rlcredit.formulas.masked import masked_mean


def find_rollout_fault(rollout: Rollout) -> NotFinite | None:
    """Return the non-finite facts of a rollout, in the order in which they were computed."""
    step, mask = rollout.step, rollout.mask
    outputs = [
        ("sampling", "log-probabilities", rollout.old_logprobs, mask),
        ("sampling", "entropy values", rollout.entropy, mask),
        ("sampling", "sums of squared probabilities", rollout.sum_pi_squared, mask),
        ("scoring the reference", "log-probabilities", rollout.ref_logprobs, mask),
        ("scoring the reference", "log-ratios", rollout.ref_log_ratio, mask),
    ]
    faults = (find_value_fault(step, *output) for output in outputs if output[2] is not None)
    return next((fault for fault in faults if fault), None)


def find_sampler_fault(
    step: int, divergence: float, metrics: Mapping[str, Tensor], tolerance: float
) -> PolicyMismatch | None:
    r"""Return the fault of a sampler whose distribution is not the trainer's.

    .. math:: \sqrt{2\,\mathrm{KL}} \approx \text{root mean square of } \log\rho_{i,t}

    Args:
        step: Optimizer steps taken.
        divergence: KL(sampler || trainer) per token in nats, estimated on data that should be on policy.
        metrics: Smallest and largest ratio, for the message.
        tolerance: How far from one the ratio of a token may lie, as a root mean square.

    """
    distance = (2 * max(divergence, 0.0)) ** 0.5
    if distance <= tolerance:
        return None
    low, high = (metrics[f"train/ratio_{end}"].item() for end in ("min", "max"))
    return PolicyMismatch(
        f"Step {step}: sampler and trainer are two policies. Before any update of this rollout the importance ratio of "
        f"a token is {distance:.2g} away from one (root mean square; {low:.3g} to {high:.3g}), and {tolerance:g} is "
        "allowed. Likely causes: a dropout that the model applies in training only; another dtype or quantization in "
        "the engine; weights changed between sampling and update; prompts padded or written in another chat template. "
        "If rounding explains it, raise model.sampler_tolerance."
    )


def find_engine_fault(
    step: int, distance: float, with_adapter: float, without_adapter: float, tolerance: float
) -> PolicyMismatch | None:
    """Return the fault of an engine whose log-probabilities are not the trainer's.

    Distances are root mean squares over tokens, in nats.

    Args:
        step: Optimizer steps taken.
        distance: Distance of the engine's log-probabilities from the trainer's.
        with_adapter: Distance of the engine's log-probabilities from the trainer's, in some completions.
        without_adapter: Distance in the same completions from the trainer's without its adapter; less than half of
            ``with_adapter`` says that the engine has no adapter, however little the adapter has learned.
        tolerance: Largest distance that is allowed.

    """
    missing = without_adapter < with_adapter / 2
    if distance <= tolerance and not missing:
        return None
    causes = (
        f"They are {without_adapter:.2g} away from the trainer's without its adapter: the engine samples from the base "
        "model, the adapter has not been applied."
        if missing
        else "Likely causes: other weights; log-probabilities before the temperature (vLLM wants --logprobs-mode "
        "processed_logprobs); another dtype or quantization in the engine. If rounding explains it, raise "
        "model.sampler_tolerance."
    )
    return PolicyMismatch(
        f"Step {step}: the engine's log-probabilities are {distance:.2g} nats away from the trainer's (root mean "
        f"square), and {tolerance:g} is allowed. {causes}"
    )


def find_weight_fault(step: int, weights: Mapping[str, Tensor], change: str) -> NotFinite | None:
    """Return the fault of weights that are not finite, after the last change of them."""
    if get_total_norm(list(weights.values())).isfinite() or not (name := find_non_finite_name(weights.items())):
        return None
    return NotFinite(
        f"Step {step}: {change} leaves weights that are not finite, {name} first. Lower the learning rate, or raise "
        "the eps of the optimizer."
    )


@dataclass
class UpdateValues:
    """The values that an update computes before the optimizer steps.

    Attributes:
        step: Optimizer steps taken before.
        rollout: Mini-batch, with the log-probabilities under the weights as they are.
        entropy: Entropy of the policy that is trained, shape ``(B, T)``.
        loss: Value of the loss, a scalar.
        loss_name: Name of the loss's class.
        rows: True on completions that were scored, shape ``(B,)``.
        metrics: Metrics of the policy, by :func:`rlcredit.training.metrics.policy_metrics`; none before the backward
            pass.
        gradient_norm: Norm of the gradient before it is clipped; unknown before the backward pass.

    """

    step: int
    rollout: Rollout
    entropy: Tensor
    loss: Tensor
    loss_name: str
    rows: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    gradient_norm: Tensor | None = None

    def find_fault(
        self, weights: Mapping[str, Tensor], has_scaler: bool, tolerance: float
    ) -> NotFinite | PolicyMismatch | None:
        """Return the first fault; without one this costs one exchange with the device.

        Args:
            weights: Weights that learn, with their gradients.
            has_scaler: Whether a gradient scaler is used, which skips steps that overflow.
            tolerance: Largest root mean square distance of importance ratios from one, see :func:`find_sampler_fault`;
                infinite where the data is not on policy.

        """
        assert self.gradient_norm is not None
        scores = torch.stack([self.rollout.logprobs.detach(), self.entropy])
        faults = torch.stack([~self.loss.isfinite(), ~self.gradient_norm.isfinite(), (~scores.isfinite()).any()])
        divergence = self.metrics["train/kl_sampler"]
        loss, gradient, forward, divergence = torch.stack([*faults.to(divergence), divergence]).tolist()
        if (loss or forward) and (fault := self._forward_fault()):
            return fault
        if gradient and not has_scaler:
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
        assert self.gradient_norm is not None
        gradients = ((name, weight.grad) for name, weight in weights.items() if weight.grad is not None)
        weight_name = find_non_finite_name(gradients)
        detail = (
            f"that of {weight_name} first"
            if weight_name
            else "though every weight's gradient is finite: the squares overflow"
        )
        return NotFinite(
            f"Step {self.step}: the backward pass gives a gradient of norm {self.gradient_norm.item()}, {detail}. The "
            f"loss is finite ({self.loss.item():.4g}). Lower the learning rate, or skip such steps with "
            "model.skip_not_finite."
        )

    def summarise_gradients(self, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Return the numbers that a post-mortem keeps: the loss, and the norm of each weight's gradient."""
        gradients = {name: weight.grad.norm().item() for name, weight in weights.items() if weight.grad is not None}
        norm = None if self.gradient_norm is None else self.gradient_norm.item()
        return {"loss": self.loss.item(), "gradient_norm": norm, "gradient_norms": gradients}


def rms_difference(logprobs: Tensor, other_logprobs: Tensor, mask: Tensor) -> float:
    """Return the root mean square of the difference of two log-probabilities over tokens, in nats."""
    return masked_mean((logprobs - other_logprobs).square(), mask).sqrt().item()


def trainable_weights(module: torch.nn.Module) -> dict[str, Tensor]:
    """Return the weights that learn, by name."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
