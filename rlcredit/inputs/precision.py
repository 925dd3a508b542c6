"""How many bits a run may compute in: an adapter is float32 under every one of these."""

from typing import Any

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
"""Values of ``trainer.precision`` under which the weights that learn stay float32."""

_OTHER_NAMES = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""What Lightning takes them to mean."""


def refuse_unfit_precision(value: Any) -> None:
    """Refuse a precision that does not exist or that would round the adapter.

    Args:
        value: of ``trainer.precision``; None is Lightning's default.

    Raises:
        ValueError: with those that remain.

    """
    if value is None or _OTHER_NAMES.get(str(value), str(value)) in PRECISIONS:
        return
    listed = f"{', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}"
    if str(value) in ("bf16-true", "16-true", "64", "64-true"):
        raise ValueError(
            f"trainer.precision: {value} would hold the adapter in as many bits; it learns in float32 and is saved so. "
            f"Choose {listed}; model.policy.dtype bfloat16 halves the frozen weights."
        )
    raise ValueError(f"trainer.precision: expected {listed}, got {str(value)[:80]!r}.")
