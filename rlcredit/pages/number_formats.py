"""Numbers as people read them: differences in points, p-values, intervals, and values with their units."""

import math
from collections.abc import Sequence

NO_VALUE = "-"
"""What stands where there is no number."""


def format_signed_points(value: float) -> str:
    """Format a difference of proportions in percentage points.

    Example:
        >>> format_signed_points(0.0123), format_signed_points(-0.004), format_signed_points(0.0)
        ('+1.23', '-0.40', '0.00')

    """
    text = f"{abs(100 * value):.2f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '-'}{text}"


def format_p_value(p: float | None) -> str:
    """Format a p-value.

    Example:
        >>> format_p_value(0.0312), format_p_value(0.00001), format_p_value(None)
        ('0.031', '<0.001', '-')

    """
    if p is None:
        return NO_VALUE
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def format_difference_interval(interval: Sequence[float] | None) -> str:
    """Format an interval of differences in points, given by its two ends; equal pairs have none.

    Example:
        >>> format_difference_interval((-0.01, 0.02)), format_difference_interval((0.0, 0.0))
        ('-1.00 to +2.00', 'all alike')

    """
    if interval is None:
        return NO_VALUE
    low, high = interval[:2]
    return f"{format_signed_points(low)} to {format_signed_points(high)}" if high - low > 1e-9 else "all alike"


def format_points_apart(difference: float, low: float, high: float, reference: str) -> str:
    """Format how far something ends from another, in points, as one says it.

    Example:
        >>> format_points_apart(4.56, 1.9, 7.21, "GRPO")
        '4.6 points above GRPO (1.9 to 7.2)'
        >>> format_points_apart(-0.4, -2.0, 1.2, "GRPO"), format_points_apart(0.0, -0.3, 0.3, "GRPO")
        ('0.4 points below GRPO (from 2.0 below to 1.2 above)', 'level with GRPO (from 0.3 below to 0.3 above)')
        >>> format_points_apart(0.0, 0.0, 0.0, "GRPO")
        'level with GRPO'

    """

    def side(value: float) -> str:
        return "level" if round(value, 1) == 0 else f"{abs(value):.1f} {'above' if value > 0 else 'below'}"

    level = round(difference, 1) == 0
    distance = f"level with {reference}" if level else side(difference).replace(" ", " points ") + f" {reference}"
    if round(low, 1) == round(high, 1) == 0:
        return distance
    if round(low, 1) * round(high, 1) > 0:
        near, far = sorted((abs(low), abs(high)))
        return f"{distance} ({near:.1f} to {far:.1f})"
    return f"{distance} (from {side(low)} to {side(high)})"


def format_with_interval(estimate: float, low: float, high: float, form: str) -> str:
    """Format an estimate with its interval.

    Example:
        >>> format_with_interval(1.25, -0.5, 3.0, "+.1f")
        '+1.2 (-0.5 to +3.0)'

    """
    return f"{estimate:{form}} ({low:{form}} to {high:{form}})"


def format_unit_value(number: float, unit: str) -> str:
    """Format a number in its unit; empty where there is none.

    Example:
        >>> format_unit_value(0.0123, "share"), format_unit_value(14.43, "degrees"), format_unit_value(-2.0, "points")
        ('1.2 %', '14.4°', '-2.00')
        >>> format_unit_value(float("nan"), "share")
        ''
        >>> format_unit_value(0.258, "number"), format_unit_value(-1.4e-08, "number")
        ('0.258', '0')
        >>> format_unit_value(-1e-17, "share"), format_unit_value(-1e-17, "points")
        ('0.0 %', '+0.00')

    """
    if math.isnan(number):
        return ""
    texts = {
        "share": f"{100 * number:z.1f} %",
        "degrees": f"{number:z.1f}°",
        "points": f"{number:+z.2f}",
        "times": f"x {number:z.2f}",
        "steps": f"{number:z.1f}",
        "tokens": f"{number:z,.0f}",
        "nats": f"{number:z.3f}",
    }
    return texts.get(unit) or f"{round(number, 4):z.3g}"


def format_unit_interval(low: float, high: float, unit: str) -> str:
    """Format an interval in its unit; empty where there is none.

    Example:
        >>> format_unit_interval(0.1, 0.25, "share"), format_unit_interval(float("nan"), 0.25, "share")
        ('10.0 % to 25.0 %', '')

    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{format_unit_value(low, unit)} to {format_unit_value(high, unit)}"
