"""Schedules as pure functions of the step."""


def linear_ramp(step: int, delay: int, steps: int) -> float:
    r"""Rise from 0 to 1 in a straight line.

    .. math:: \lambda(t) = \operatorname{clip}\Bigl(\frac{t - \mathrm{delay}}{\mathrm{steps}},\; 0,\; 1\Bigr)

    Zero up to and including ``delay``; one from ``delay + steps`` on. The delay moves the ramp and does not shorten it:
    of 100 steps the last is number 99, and with delay 5 and steps 100 it sees 0.94.

    Args:
        step: Optimizer steps taken.
        delay: Last step at which the ramp is zero.
        steps: Length of the rise, at least 1.

    Example:
        >>> [linear_ramp(step, delay=5, steps=100) for step in (0, 5, 6, 50, 99, 105, 200)]
        [0.0, 0.0, 0.01, 0.45, 0.94, 1.0, 1.0]

    """
    return min(max((step - delay) / steps, 0.0), 1.0)
