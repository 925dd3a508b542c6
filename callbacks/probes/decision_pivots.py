"""Critical decision pivots: tokens at which the policy is less decided than its group usually is."""

from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.groups import group_standardized
from rlcredit.formulas.masked import masked_mean


def local_maxima(values: Tensor, mask: Tensor) -> Tensor:
    """Mark values that exceed both neighbours; the first and the last token need to exceed only their one neighbour.

    Args:
        values: One value per token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Example:
        >>> import torch
        >>> local_maxima(torch.tensor([[1.0, 3.0, 2.0, 9.0]]), torch.ones(1, 4, dtype=torch.bool))
        tensor([[False,  True, False,  True]])

    """
    places = number_places(mask)
    values = close_gaps(values.where(mask, -float("inf")), places)
    padded_values = pad(values, (1, 1), value=-float("inf"))
    return open_gaps((values > padded_values[:, :-2]) & (values > padded_values[:, 2:]), places) & mask


class DecisionPivots(CreditOperator, reads="entropy"):
    """Log how many tokens are critical decision pivots in ERPO's sense (2603.28204), a reconstruction.

    ``pivot_fraction``: entropy above the group's mean, where ERPO's gate is above one half. ``strong_fraction``: more
    than one deviation above it. ``transient_fraction``: pivots that exceed both neighbours.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the shares of tokens."""
        standard = group_standardized(rollout.entropy, rollout.mask, rollout.group_size)
        pivots = standard > 0
        kinds = {
            "pivot_fraction": pivots,
            "strong_fraction": standard > 1,
            "transient_fraction": pivots & local_maxima(rollout.entropy, rollout.mask),
        }
        return {name: masked_mean(selection.float(), rollout.mask) for name, selection in kinds.items()}
