"""How fast the policy's entropy falls, what drives it, and how much reward it can still buy."""

import math

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.masked import masked_mean


def exponential_law(sums: Tensor) -> tuple[float, float, float]:
    r"""Fit :math:`R = -a e^H + b` by least squares.

    Args:
        sums: Sums of 1, x, y, xx, xy and yy over the points, :math:`x = e^H` and y the reward, shape ``(6,)`` float64.

    Returns:
        a, b and the share of variance explained; zeros while entropy has not varied.

    Example:
        >>> x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.9, 0.7, 0.5])
        >>> a, b, explained = exponential_law(torch.stack([x**0, x, y, x * x, x * y, y * y]).double().sum(-1))
        >>> round(a, 4), round(b, 4), round(explained, 4)
        (0.2, 1.1, 1.0)

    """
    count, x, y, xx, xy, yy = sums.tolist()
    spread = count * xx - x * x
    if count < 3 or spread <= 1e-9 * count * xx:
        return 0.0, 0.0, 0.0
    slope = (count * xy - x * y) / spread
    total = count * yy - y * y
    share = slope**2 * spread / total if total > 0 else 0.0
    return -slope, (y - slope * x) / count, share


class EntropyCollapse(
    CreditOperator, reads="advantages correct entropy judged old_logprobs step", state="initial halved_at sums"
):
    r"""Log how much entropy is left, Cov(log pi, A) at this place in the list, and the law R = -a e^H + b so far.

    Cui et al. (2025, arXiv:2505.22617): a policy gradient step changes entropy by about minus the covariance, and
    reward is bought with entropy, up to ``law_b - law_a`` when none is left. ``steps_to_half`` is the step by which
    half of the initial entropy was gone, and grows until then. ``certain_fraction`` are the tokens below 0.01 nats.
    """

    def __init__(self) -> None:
        super().__init__()
        self.initial: float | None = None
        self.halved_at: int | None = None
        self.sums = torch.zeros(6, dtype=torch.float64)

    def assign(self, rollout: Rollout) -> Metrics:
        """Add the batch, of all processes, to the running sums."""
        entropy, scores, credit = rollout.entropy, rollout.old_logprobs.double(), rollout.advantages.double()
        mean = pooled_mean_var(entropy, rollout.mask)[0].item()
        reward = pooled_mean_var(rollout.correct, rollout.judged)[0].item()
        self.initial = mean if self.initial is None else self.initial
        if self.halved_at is None and mean <= self.initial / 2:
            self.halved_at = rollout.step
        x = math.exp(mean)
        self.sums = self.sums + self.sums.new_tensor([1, x, reward, x * x, x * reward, reward**2])
        deviations = [values - pooled_mean_var(values, rollout.mask)[0] for values in (scores, credit)]
        law = dict(zip(("law_a", "law_b", "law_explained"), exponential_law(self.sums), strict=True))
        return {
            "remaining": mean / self.initial if self.initial else 1.0,
            "steps_to_half": float(rollout.step if self.halved_at is None else self.halved_at),
            "certain_fraction": masked_mean((entropy < 0.01).float(), rollout.mask),
            "covariance": pooled_mean_var(deviations[0] * deviations[1], rollout.mask)[0],
            **law,
        }
