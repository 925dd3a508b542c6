"""The change of the gradient under an operator, compared with the change under other prompts."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rlcredit.cards.card_batch import CreditedBatch
from rlcredit.cards.finding import Finding
from rlcredit.statistics.batch_agreement import agreement_and_direction, batch_gradients, unit_gradients
from rlcredit.statistics.intervals import jackknife_interval
from rlcredit.statistics.t_test import paired_t_test


def measure_gradient_change(batch: CreditedBatch, base: CreditedBatch, size: int) -> Iterator[Finding]:
    """Yield angle, length, noise and direction of the gradient, or its absence if the stack gives almost none.

    Args:
        batch: Batch under the stack that is judged.
        base: Same completions under the baseline.
        size: Prompts per batch whose gradients are compared.

    """
    assert batch.gradients is not None
    assert base.gradients is not None
    stack_gradients, base_gradients = batch_gradients(batch.gradients, size), batch_gradients(base.gradients, size)
    lengths = [np.linalg.norm(vectors, axis=-1) for vectors in (stack_gradients, base_gradients)]
    has_gradient = (lengths[0] > 0) & (lengths[1] > 0)
    if has_gradient.sum() < 3:
        counts = [int((norms > 0).sum()) for norms in lengths]
        reason = (
            f"{counts[0]} of {len(has_gradient)} batches have a gradient, {counts[1]} under the baseline: too few to "
            "compare."
        )
        yield Finding("batches", "batches with a gradient", counts[0], baseline=counts[1], sentence=reason)
        return
    cosines = (unit_gradients(stack_gradients) * unit_gradients(base_gradients)).sum(-1)[has_gradient].clip(-1, 1)
    angles = np.degrees(np.arccos(cosines))
    agreement, agreement_gain, direction = agreement_and_direction(
        stack_gradients[has_gradient], base_gradients[has_gradient]
    )
    floor = _mean_batch_angle(base_gradients[has_gradient])
    rotation = paired_t_test(angles)
    low, high = rotation.interval[:2]
    beyond = "about as far as" if low <= floor <= high else "more than" if low > floor else "less than"
    yield Finding(
        "angle",
        "angle to the baseline's gradient",
        rotation.difference,
        "degrees",
        *_clip_interval(rotation.interval, 0, 180),
        sentence=f"The stack rotates the gradient by {rotation.difference:.1f}°, {beyond} other prompts do.",
    )
    yield Finding(
        "floor",
        "angle between other prompts",
        floor,
        "degrees",
        sentence=f"Under the baseline the gradients of two batches of {size} prompts differ by this angle.",
    )
    ratio = paired_t_test(np.log(lengths[0][has_gradient] / lengths[1][has_gradient]))
    times = np.exp([ratio.difference, *ratio.interval[:2]])
    yield Finding(
        "length",
        "length of the gradient",
        float(times[0]),
        "times",
        float(times[1]),
        float(times[2]),
        baseline=1.0,
        sentence=f"It is {times[0]:.3g} times as long as the baseline's, before clipping and the optimizer.",
    )
    yield Finding(
        "agreement",
        "agreement of two batches",
        float(agreement[0]),
        "number",
        *_clip_interval(jackknife_interval(float(agreement[0]), agreement[1:]), -1, 1),
        baseline=float(agreement[0] - agreement_gain[0]),
        sentence=f"Two batches of {size} prompts agree with a cosine of {agreement[0]:.2f}; under the baseline with "
        f"{agreement[0] - agreement_gain[0]:.2f}.",
    )
    gain = jackknife_interval(float(agreement_gain[0]), agreement_gain[1:])
    yield Finding(
        "agreement_gained",
        "agreement beyond the baseline's",
        float(agreement_gain[0]),
        "number",
        gain.low,
        gain.high,
        sentence=_describe_noise_change(gain.low, gain.high),
    )
    if np.isfinite(direction).all():
        direction_interval = jackknife_interval(float(direction[0]), direction[1:])
        yield Finding(
            "direction",
            "direction of the expected gradient",
            float(np.clip(direction[0], -1, 1)),
            "number",
            *_clip_interval(direction_interval, -1, 1),
            baseline=1.0,
            sentence=_describe_direction(direction_interval.low, direction_interval.high),
        )


def _mean_batch_angle(gradients: NDArray[np.float64]) -> float:
    """Return the mean angle between two batches, in degrees."""
    cosines = unit_gradients(gradients) @ unit_gradients(gradients).T
    return float(np.degrees(np.arccos(cosines[np.triu_indices(len(cosines), 1)].clip(-1, 1))).mean())


def _describe_noise_change(low: float, high: float) -> str:
    if low > 0:
        return "There is less noise in its gradient than in the baseline's."
    return "There is more noise in its gradient." if high < 0 else "No difference in noise is detected."


def _describe_direction(low: float, high: float) -> str:
    if high < 0:
        return "On average it points the opposite way."
    if high < 1:
        return "On average it points elsewhere than the baseline: part of its effect is bias, not less noise."
    return "No difference from the baseline's average direction is detected."


def _clip_interval(interval: tuple[float, ...] | NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    return max(low, float(interval[0])), min(high, float(interval[1]))
