"""The first value of a phase that is NaN or infinite, named with its place and a repair."""

from torch import Tensor

from rlcredit.base.exit_status import NotFinite

REPAIR_OF_PHASE = {
    "sampling": "The forward pass of the engine overflows; hold the model in bfloat16 or float32.",
    "sampling held-out answers": "The weights have grown too large for the model's precision; lower the learning rate.",
    "scoring the reference": "The model overflows without its adapter; hold it in bfloat16 or float32.",
    "the scoring forward": "The model overflows; hold it in bfloat16 or float32, or lower the learning rate.",
}
"""By phase; what to do next."""


def find_value_fault(step: int, phase: str, name: str, values: Tensor, mask: Tensor) -> NotFinite | None:
    """Return the fault of a phase whose output has NaN or infinity.

    Args:
        step: Optimizer steps taken.
        phase: Phase whose output the values are.
        name: Name of the values, in the plural.
        values: Value per token, shape ``(B, T)``, or per completion, shape ``(B,)``.
        mask: Values that matter, boolean, same shape.

    """
    wrong = ~values.isfinite() & mask
    if not wrong.any():
        return None
    index = wrong.nonzero()[0].tolist()
    repair = REPAIR_OF_PHASE.get(phase, "Look for a division or a logarithm there.")
    place = ", ".join(f"{unit} {number}" for unit, number in zip(("completion", "token"), index, strict=False))
    return NotFinite(
        f"Step {step}: {phase} gives {name} that are not finite, {int(wrong.sum())} of {int(mask.sum())}, the first "
        f"({values[tuple(index)].item()}) at {place}. {repair}"
    )
