"""Checks of rollouts, samplers and weights; each returns an exception that is not raised yet, or None."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn.utils import get_total_norm

from rlcredit.exits import NotFinite, PolicyMismatch
from rlcredit.functional.finite import find_non_finite_name
from rlcredit.rollout import Rollout

REPAIR = {
    "sampling": "The forward pass of the engine overflows; hold the model in bfloat16 or float32.",
    "sampling held-out answers": "The weights have grown too large for the model's precision; lower the learning rate.",
    "scoring the reference": "The model overflows without its adapter; hold it in bfloat16 or float32.",
    "the scoring forward": "The model overflows; hold it in bfloat16 or float32, or lower the learning rate.",
}
"""By phase; what to do next."""


def find_value_fault(step: int, phase: str, name: str, values: Tensor, counted: Tensor) -> NotFinite | None:
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
    index = wrong.nonzero()[0].tolist()
    where = ", ".join(f"{unit} {number}" for unit, number in zip(("completion", "token"), index, strict=False))
    return NotFinite(
        f"Step {step}: {phase} gives {name} that are not finite, {int(wrong.sum())} of {int(counted.sum())}, the first "
        f"({values[tuple(index)].item()}) at {where}. {REPAIR.get(phase, 'Look for a division or a logarithm there.')}"
    )


def find_rollout_fault(rollout: Rollout) -> NotFinite | None:
    """Return what is not finite in the facts of a rollout, in the order in which they came to be."""
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
        step: optimizer steps taken.
        divergence: KL(sampler || trainer) per token in nats, estimated on data that should be on policy.
        metrics: the smallest and largest ratio, for the message.
        tolerance: how far from one the ratio of a token may lie, as a root mean square.

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
        step: optimizer steps taken.
        distance: of the engine's log-probabilities from the trainer's.
        with_adapter: likewise, in some completions.
        without_adapter: in the same completions, from the trainer's without its adapter; less than half of
            ``with_adapter`` says that the engine has no adapter, however little the adapter has learned.
        tolerance: largest distance that is allowed.

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


def find_weight_fault(step: int, weights: Mapping[str, Tensor], after: str) -> NotFinite | None:
    """Return the fault of weights that are not finite, after the last change of them."""
    if get_total_norm(list(weights.values())).isfinite() or not (first := find_non_finite_name(weights.items())):
        return None
    return NotFinite(
        f"Step {step}: {after} leaves weights that are not finite, {first} first. Lower the learning rate, or raise "
        "the eps of the optimizer."
    )
