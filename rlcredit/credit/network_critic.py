"""A critic that is a small network on features of prefixes, with a replay of the last rollouts."""

from collections.abc import Callable

import torch
from torch import Tensor

from rlcredit.credit.critic import FeatureCritic
from rlcredit.credit.value_network import ValueNetwork
from rlcredit.formulas.reward_histogram import RewardHistogram


class NetworkCritic(FeatureCritic, state="network replay"):
    """Base of critics with a network of two hidden layers; see ``HeadCritic`` for its arguments."""

    def __init__(
        self,
        width: int = 64,
        rate: float = 3e-3,
        decay: float = 1.0,
        fits: int = 20,
        batch: int = 512,
        rollouts: int = 32,
        prefixes: int = 4096,
        target: RewardHistogram | None = None,
        warmup: int = 1,
        lam: float = 1.0,
    ) -> None:
        super().__init__(warmup, lam)
        if min(width, fits, batch, rollouts, prefixes) < 1 or not (rate > 0 and decay >= 0):
            raise ValueError(
                f"{type(self).__name__} expects width, fits, batch, rollouts and prefixes >= 1, rate > 0 and decay "
                f">= 0, got {width}, {fits}, {batch}, {rollouts}, {prefixes}, {rate:g} and {decay:g}."
            )
        self.width, self.rate, self.decay = width, rate, decay
        self.fits, self.batch, self.rollouts, self.prefixes = fits, batch, rollouts, prefixes
        self.target = target or RewardHistogram()
        self.network: dict = {}
        self.replay: list[list[Tensor]] = []

    def fit(self, features: Tensor, returns: Tensor, noise: torch.Generator) -> Tensor:
        """Keep some prefixes of the rollout and fit the network to all that are kept."""
        sample = torch.randperm(len(features), generator=noise)[: self.prefixes].to(features.device)
        self.replay = [*self.replay, [features[sample], returns[sample]]][-self.rollouts :]
        features, returns = map(torch.cat, zip(*self.replay, strict=True))
        if not self.network:
            self.network = vars(ValueNetwork.for_features(features, self.width, self.target.bins, noise))
        network, shares = ValueNetwork(**self.network), self.target.shares(returns)
        steps = self.fits * (4 if self.fitted < self.warmup else 1)
        loss = network.improve(features, shares, steps, self.batch, self.rate, self.decay, noise)
        self.network = vars(network)
        return loss

    def make_predictor(self) -> Callable[[Tensor], Tensor]:
        """Return the mean of the predicted histogram, by the weights as they are."""
        network = ValueNetwork(**self.network)
        return lambda features: self.target.mean(network.outputs(features))
