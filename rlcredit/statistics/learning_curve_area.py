"""Area under a learning curve, as the mean height of the curve."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def learning_curve_area(steps: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
    r"""Average a curve over its steps by the trapezoid rule.

    .. math:: \frac{1}{x_n - x_1} \sum_{i=1}^{n-1} (x_{i+1} - x_i) \frac{y_i + y_{i+1}}{2}

    The area is in the unit of the curve, so that curves over different ranges of steps can be read side by side. Steps
    need not be equally spaced; a flat curve has its own height as its area.

    Args:
        steps: increasing, shape ``(n,)``.
        values: the curve at these steps, for instance pass@1, shape ``(..., n)``.

    Returns:
        One area per curve, shape ``(...)``.

    Raises:
        ValueError: fewer than two steps, or steps that do not increase.

    Example:
        >>> round(float(learning_curve_area([0, 10, 40], [0.0, 0.4, 0.4])), 4)  # (2 + 12) / 40
        0.35

    """
    at = np.asarray(steps, dtype=np.float64)
    if len(at) < 2 or (np.diff(at) <= 0).any():
        raise ValueError(f"An area needs at least two increasing steps, got {at.tolist()}. Sort them, drop repeats.")
    return np.trapezoid(np.asarray(values, dtype=np.float64), at, axis=-1) / (at[-1] - at[0])
