"""What is wrong with a rollout, an update or weights, as an exception that is not raised yet; None if nothing is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlcredit.exits import NotFinite, TwoPolicies
from rlcredit.functional.finite import first_not_finite, total_norm
from rlcredit.rollout import Rollout

REPAIR = {
    "sampling": "The forward pass of the engine overflows; hold the model in bfloat16 or float32.",
    "verification": "The task's `judge` must return a Verdict for each completion: RIGHT, WRONG or UNJUDGED.",
    "scoring the reference": "The model overflows without its adapter; hold it in bfloat16 or float32.",
    "the scoring forward": "The model overflows; hold it in bfloat16 or float32, or lower the learning rate.",
}
"""By phase; what to do next."""


def not_finite(step: int, phase: str, name: str, values: Tensor, counted: Tensor) -> NotFinite | None:
    """Return the fault of a phase that leaves NaN or infinity.

    Args:
        step: optimizer steps taken.
        phase: whose output this is.
        name: of the values, in the plural.
        values: one per token, shape ``(B, T)``, or per completion, shape ``(B,)``.
        counted: those that matter, boolean, same shape.

    """
    wrong = ~values.isfinite() & counted
    if not wrong.any():
        return None
    place = wrong.nonzero()[0].tolist()
    where = ", ".join(f"{unit} {number}" for unit, number in zip(("completion", "token"), place, strict=False))
    return NotFinite(
        f"Step {step}: {phase} gives {name} that are not finite, {int(wrong.sum())} of {int(counted.sum())}, the first "
        f"({values[tuple(place)].item()}) at {where}. {REPAIR.get(phase, 'Look for a division or a logarithm there.')}"
    )


def rollout_fault(rollout: Rollout) -> NotFinite | None:
    """Return what is not finite in the facts of a rollout, in the order in which they came to be."""
    step, mask, rows = rollout.step, rollout.mask, rollout.mask.any(-1)
    outputs = [
        ("sampling", "log-probabilities", rollout.old_logprobs, mask),
        ("sampling", "entropy values", rollout.entropy, mask),
        ("sampling", "sums of squared probabilities", rollout.sum_pi_squared, mask),
        ("verification", "rewards", rollout.correct, rows),
        ("scoring the reference", "log-probabilities", rollout.ref_logprobs, mask),
    ]
    faults = (not_finite(step, *output) for output in outputs if output[2] is not None)
    return next((fault for fault in faults if fault), None)


@dataclass
class Update:
    """What an update computes on its way to the optimizer.

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

    def fault(self, weights: Mapping[str, Tensor], scaled: bool, tolerance: float) -> NotFinite | TwoPolicies | None:
        """Return the first thing that is wrong: one exchange with the device if nothing is.

        Args:
            weights: those that learn, with their gradients.
            scaled: whether a scaler of half-precision gradients, which passes over an overflow, looks after them.
            tolerance: as :func:`disagreement` has it; infinite where the data is not on policy.

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
        return disagreement(self.step, divergence, self.metrics, tolerance)

    def _forward_fault(self) -> NotFinite | None:
        step, rollout, mask = self.step, self.rollout, self.rollout.mask
        scoring = "the scoring forward"
        return (
            not_finite(step, "a callback outside the stack", "advantages", rollout.advantages, mask)
            or not_finite(step, scoring, "log-probabilities", rollout.logprobs.detach(), mask)
            or not_finite(step, scoring, "entropy values", self.entropy, mask)
            or self._loss_fault()
        )

    def _loss_fault(self) -> NotFinite | None:
        if self.loss.isfinite():
            return None  # what is not finite stands under the mask
        return NotFinite(
            f"Step {self.step}: the loss {self.loss_name} is {self.loss.item()}, from finite credit and "
            "log-probabilities. Bound its ratios, or lower the learning rate."
        )

    def _gradient_fault(self, weights: Mapping[str, Tensor]) -> NotFinite:
        assert self.norm is not None
        gradients = ((name, weight.grad) for name, weight in weights.items() if weight.grad is not None)
        first = first_not_finite(gradients)
        whose = f"that of {first} first" if first else "though that of every weight is; their squares overflow"
        return NotFinite(
            f"Step {self.step}: the backward pass gives a gradient of norm {self.norm.item()}, {whose}. The loss is "
            f"finite ({self.loss.item():.4g}). Lower the learning rate, or pass over such steps with "
            "model.skip_not_finite."
        )

    def known(self, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Return the numbers that a post-mortem keeps: the loss, and the norm of each weight's gradient."""
        gradients = {name: weight.grad.norm().item() for name, weight in weights.items() if weight.grad is not None}
        norm = None if self.norm is None else self.norm.item()
        return {"loss": self.loss.item(), "gradient_norm": norm, "gradient_norms": gradients}


def disagreement(step: int, divergence: float, metrics: Mapping[str, Tensor], tolerance: float) -> TwoPolicies | None:
    r"""Return the fault of a sampler that is not the trainer.

    .. math:: \sqrt{2\,\mathrm{KL}} \approx \text{root mean square of } \log\rho_{i,t}

    Args:
        step: optimizer steps taken.
        divergence: KL(sampler || trainer) per token in nats, estimated on data that should be on policy.
        metrics: the smallest and largest ratio, for the message.
        tolerance: how far from one the ratio of a token may lie, as a root mean square.

    """
    found = (2 * max(divergence, 0.0)) ** 0.5
    if found <= tolerance:
        return None
    low, high = (metrics[f"train/ratio_{end}"].item() for end in ("min", "max"))
    return TwoPolicies(
        f"Step {step}: sampler and trainer are two policies. Before any update of this rollout the importance ratio of "
        f"a token is {found:.2g} away from one (root mean square; {low:.3g} to {high:.3g}), and {tolerance:g} is "
        "allowed. Likely causes: a dropout that the model applies in training only; another dtype or quantization in "
        "the engine; weights changed between sampling and update; prompts padded or written in another chat template. "
        "If rounding explains it, raise model.sampler_tolerance."
    )


def weight_fault(step: int, weights: Mapping[str, Tensor], after: str) -> NotFinite | None:
    """Return the fault of weights that are not finite, after whatever has changed them last."""
    if total_norm(list(weights.values())).isfinite() or not (first := first_not_finite(weights.items())):
        return None
    return NotFinite(
        f"Step {step}: {after} leaves weights that are not finite, {first} first. Lower the learning rate, or raise "
        "the eps of the optimizer."
    )
