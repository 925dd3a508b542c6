"""The largest lead that a run could have over the runs of a baseline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rlcredit.statistics.run_aggregates import learning_curve_area

SPENT_SHARE = 0.25
"""Share of what was learnt, below which the baseline has left nothing to gain."""


@dataclass(frozen=True)
class Headroom:
    """Hold the largest possible leads, in the unit of the curves.

    Args:
        at_first: Largest lead at the first evaluation after training began.
        by_area: Largest lead in the area under the curve.
        learnt: Distance from the baseline's start to the best score.

    """

    at_first: float
    by_area: float
    learnt: float

    def is_spent(self, margin: float) -> bool:
        """Whether a lead over the margin was impossible.

        The best score is the best that was seen. Where hardly anything was learnt it is no ceiling, so the head-room
        must be a small part of what was learnt, too.

        Args:
            margin: Difference that does not matter.

        """
        return self.by_area <= min(margin, SPENT_SHARE * self.learnt)


def area_headroom(places: ArrayLike, curves: ArrayLike, best: float) -> Headroom:
    r"""Return the largest leads of a run that is at the best score from the first evaluation after training began.

    .. math:: \frac{1}{x_n - x_0} \int_{x_0}^{x_n} (h(x) - y(x))\, dx, \qquad h(x_0) = y(x_0), \quad
        h(x_1) = \dots = h(x_n) = y^*

    by the trapezoid rule, averaged over the runs. A run cannot have learnt before it begins, and so the first mark
    decides how much of an early lead can be seen: the earlier it lies, the more.

    Args:
        places: Steps or tokens of the n + 1 evaluations, increasing; the first one precedes training.
        curves: Curves y of the baseline's runs, shape ``(runs, n + 1)``.
        best: Best score of all runs at any evaluation, y*.

    Example:
        >>> area_headroom([0, 25, 100], [[0.5, 0.8, 0.9]], best=0.9)  # 0.1 x (25 + 75) / 2 / 100
        Headroom(at_first=0.1, by_area=0.05, learnt=0.4)

    """
    leads = best - np.asarray(curves, dtype=np.float64)
    learnt = float(leads[:, 0].mean())
    leads[:, 0] = 0
    area = learning_curve_area(places, leads).mean()
    return Headroom(round(float(leads[:, 1].mean()), 12), round(float(area), 12), round(learnt, 12))
