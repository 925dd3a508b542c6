"""Ridge critic: a linear function of the policy's hidden states, fitted in closed form to all earlier rollouts."""

from collections.abc import Callable

import torch
from torch import Tensor

from rlcredit.credit.critic import FeatureCritic


def ridge_weights(gram: Tensor, moment: Tensor, ridge: float) -> Tensor:
    r"""Return the weights of ridge regression.

    .. math:: (X^\top X + \rho\, \overline{\operatorname{diag}(X^\top X)}\, I)^{-1} X^\top y

    Args:
        gram: Sum of products of features, :math:`X^\top X`, shape ``(F, F)``.
        moment: Sum of features times targets, :math:`X^\top y`, shape ``(F,)``.
        ridge: Penalty :math:`\rho`, relative to the mean square of a feature.

    Example:
        >>> ridge_weights(torch.eye(2), torch.tensor([1.0, 0.0]), ridge=1.0)
        tensor([0.5000, 0.0000])

    """
    penalty = ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    return torch.linalg.solve(gram + penalty, moment)


class RidgeCritic(FeatureCritic, state="gram moment"):
    """Estimate values by ridge regression of the reward on hidden states, in closed form.

    What it learns is how far the reward lies from the mean of the group's others; that mean is part of its features,
    and is added again. No step size, no epochs: two sums are kept, in which earlier rollouts are forgotten
    geometrically.

    Args:
        forgetting: Factor by which earlier rollouts count less with each new one; 1 forgets nothing.
        ridge: Penalty, relative to the mean square of a feature.
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of what it learns; 1 is the return itself, less learns from rewards and its own values alone.

    """

    def __init__(self, forgetting: float = 0.95, ridge: float = 0.1, warmup: int = 1, lam: float = 1.0) -> None:
        super().__init__(warmup, lam)
        if not (0 < forgetting <= 1 and ridge > 0):
            raise ValueError(f"RidgeCritic expects 0 < forgetting <= 1 and ridge > 0, got {forgetting} and {ridge}.")
        self.forgetting = forgetting
        self.ridge = ridge
        self.gram: Tensor | None = None
        self.moment: Tensor | None = None

    def fit(self, features: Tensor, returns: Tensor, noise: torch.Generator) -> Tensor:
        """Add the rollout to the two sums."""
        inputs, targets = _add_constant(features), (returns - features[:, -1]).double()
        gram, moment = inputs.T @ inputs, inputs.T @ targets
        if self.gram is not None and self.moment is not None:
            gram, moment = gram + self.forgetting * self.gram, moment + self.forgetting * self.moment
        self.gram, self.moment = gram, moment
        return (inputs @ ridge_weights(gram, moment, self.ridge) - targets).square().mean()

    def make_predictor(self) -> Callable[[Tensor], Tensor]:
        """Return the linear function, by the sums as they are."""
        assert self.gram is not None
        assert self.moment is not None
        weights = ridge_weights(self.gram, self.moment, self.ridge)
        return lambda features: (features[:, -1] + _add_constant(features) @ weights).float()


def _add_constant(features: Tensor) -> Tensor:
    """Return features with a last column of ones, float64."""
    return torch.cat([features.double(), torch.ones_like(features[:, :1], dtype=torch.float64)], -1)
