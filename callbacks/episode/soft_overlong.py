"""Soft overlong shaping: answers that come close to the limit lose reward."""

import math
from typing import TYPE_CHECKING, cast

from torch import Tensor

from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.formulas.turns import find_read_lengths

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from rlcredit.training.module import PolicyModule


def overlong_penalty(lengths: Tensor, max_tokens: int, cache: int) -> Tensor:
    r"""Return the reward that a completion loses for its length.

    .. math:: 0 \text{ up to } L_{max} - L_{cache}, \qquad \frac{(L_{max} - L_{cache}) - L}{L_{cache}}
        \text{ up to } L_{max}, \qquad -1 \text{ beyond}

    Yu et al. (2025, arXiv:2503.14476, DAPO).

    Args:
        lengths: Tokens per completion, shape ``(B,)``.
        max_tokens: :math:`L_{max}`.
        cache: :math:`L_{cache}`.

    Returns:
        In [-1, 0], shape ``(B,)``.

    Example:
        >>> import torch
        >>> overlong_penalty(torch.tensor([90.0, 110.0, 120.0, 130.0]), max_tokens=120, cache=20)
        tensor([ 0.0000, -0.5000, -1.0000, -1.0000])

    """
    return ((max_tokens - cache - lengths) / cache).clamp(-1, 0)


class SoftOverlong(CreditOperator, reads="judged rewards", writes="rewards", neutral={"factor": 0.0}):
    """Add ``factor`` times :func:`overlong_penalty` to the rewards. Put it above the operator that reads them.

    Verdicts do not change: ``MaxRL`` and ``PassAtK``, whose theory assumes right and wrong, and every gate and probe
    read ``correct`` and do not see the penalty. A completion without a verdict keeps the mean of its group's others.

    Args:
        factor: Largest reward that is lost; 0 is the identity. DAPO takes 1 from rewards of 1 and -1, half of their
            distance; where right is 1 and wrong 0, half of the distance is 0.5.
        max_tokens: Limit of the length; ``model.sampling.max_tokens`` if None. DAPO uses 20480.
        cache: Number of tokens before the limit at which the penalty begins; a fifth of it if None, as DAPO's 4096 are.

    """

    def __init__(self, factor: float = 0.5, max_tokens: int | None = None, cache: int | None = None) -> None:
        super().__init__()
        self.factor, self.max_tokens, self.cache, self.limit = factor, max_tokens, cache, max_tokens
        self._refuse_bad_lengths()

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Take the limit over from the sampler, unless one is given."""
        super().setup(trainer, pl_module, stage)
        self.limit = self.max_tokens or cast("PolicyModule", pl_module).sampling.max_tokens
        self._refuse_bad_lengths()

    def _refuse_bad_lengths(self) -> None:
        if not (self.factor >= 0 and 0 < (self.cache or 1) <= (self.limit or math.inf)):
            raise ValueError(
                f"SoftOverlong expects factor >= 0 and 0 < cache <= max_tokens, got {self.factor}, {self.cache} and "
                f"{self.limit}."
            )

    def bound_rewards(self, low: float, high: float) -> tuple[float, float]:
        """Return the range of rewards that leave."""
        return low - self.factor, high

    def assign(self, rollout: Rollout) -> Metrics:
        """Penalise; log the share of completions that lose something, and the mean loss."""
        if self.limit is None:
            raise StackError("SoftOverlong has no limit outside a trainer. Pass max_tokens.")
        cache = self.cache or max(1, self.limit // 5)
        penalty = self.factor * overlong_penalty(find_read_lengths(rollout.mask).float(), self.limit, cache)
        rollout.rewards = group_imputed_values(rollout.rewards + penalty, rollout.judged, rollout.group_size)
        return {"penalized_fraction": (penalty < 0).float().mean(), "penalty": penalty.mean()}
