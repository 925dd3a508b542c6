"""A critic: an operator that estimates what prefixes are worth, and learns from each rollout after it has judged it."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import OPERATORS, sampling_seeds, stream_number
from rlcredit.formulas.distributed import gather_over_processes
from rlcredit.formulas.groups import leave_one_out_means
from rlcredit.formulas.prefix_statistics import prefix_statistics
from rlcredit.formulas.value_estimates import calibration_sums, critic_briers, generalized_advantages, value_skill


@dataclass
class FittedCritic:
    """A critic as it was fitted to earlier rollouts.

    Args:
        predict: Function from features of prefixes, shape ``(N, F)``, to expected rewards, shape ``(N,)``.

    """

    predict: Callable[[Tensor], Tensor]

    def estimate(self, rollout: Rollout, rows: Tensor, hidden: Tensor, path: Tensor) -> Tensor:
        """Return the expected reward behind prefixes; see :class:`rlcredit.credit.rollout.ValueFunction`."""
        return self.predict(prefix_features(rollout, rows, hidden, path))


def prefix_features(rollout: Rollout, rows: Tensor, hidden: Tensor, path: Tensor) -> Tensor:
    """Return what a critic knows about prefixes: hidden state, path and the mean reward of the group's others.

    Hidden states are divided by their root mean square, so that features are of order one in any model.

    Args:
        rollout: Rollout that the prefixes belong to, or branch off from.
        rows: Row of each prefix, shape ``(N,)``.
        hidden: Last hidden state of each prefix, shape ``(N, D)``.
        path: Statistics of each prefix, shape ``(N, S)``.

    Returns:
        Shape ``(N, D + S + 1)`` float32.

    """
    others = leave_one_out_means(rollout.judged_rewards, rollout.group_size)[rows, None]
    states = hidden.float()
    scale = states.square().mean(-1, keepdim=True).sqrt().clamp(min=torch.finfo(torch.float32).tiny)
    return torch.cat([states / scale, path, others], -1)


def move_tensors(value: Any, device: torch.device) -> Any:
    """Return a tensor on a device, lists and dicts with all of theirs there, and anything else as it is."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, list):
        return [move_tensors(each, device) for each in value]
    if isinstance(value, dict):
        return {name: move_tensors(each, device) for name, each in value.items()}
    return value


class Critic(
    CreditOperator,
    reads="hidden judged old_logprobs rewards step",
    writes="critic critic_weight values",
    state="fitted",
    costly=True,
):
    """Base of critics: judge a rollout as earlier ones have taught, then learn from it.

    A subclass says how it learns (:meth:`learn`) and what it predicts (:meth:`make_predictor`). Of several processes
    each one learns from the rollouts of all, in the same order and with the same noise, so that they stay equal.

    Until it has learned from ``warmup`` rollouts it leaves values as they are, and takes all weight from them.

    Args:
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of the returns that it learns; 1 is the reward itself, less leans on its own values.

    """

    def __init__(self, warmup: int = 2, lam: float = 1.0) -> None:
        super().__init__()
        if warmup < 1 or not 0 <= lam <= 1:
            raise ValueError(f"{type(self).__name__} expects warmup >= 1 and 0 <= lam <= 1, got {warmup} and {lam}.")
        self.warmup = warmup
        self.lam = lam
        self.fitted = 0

    @abstractmethod
    def learn(self, features: Tensor, returns: Tensor, noise: torch.Generator) -> Tensor:
        """Learn from the prefixes of a rollout.

        Args:
            features: Features of prefixes, shape ``(N, F)``.
            returns: Return of each, shape ``(N,)``.
            noise: Source of all random numbers, on the CPU.

        Returns:
            Loss after learning, a scalar.

        """

    @abstractmethod
    def make_predictor(self) -> Callable[[Tensor], Tensor]:
        """Return the critic as it is, a function from features, ``(N, F)``, to values, ``(N,)``."""

    def move_state(self, device: torch.device) -> None:
        """Move what was learned to the device of the rollouts; from a checkpoint it comes on the CPU."""
        for name in self.state:
            setattr(self, name, move_tensors(getattr(self, name), device))

    def assign(self, rollout: Rollout) -> Metrics:
        """Estimate values; log how good they are on this rollout, which the critic has not seen, and the loss after."""
        self.move_state(rollout.hidden.device)
        mask, counted = rollout.mask, rollout.judged_mask
        rows, places = mask.nonzero(as_tuple=True)
        path = prefix_statistics(-rollout.old_logprobs)
        features = prefix_features(rollout, rows, rollout.hidden[rows, places], path[rows, places])
        returns = rollout.rewards[:, None].expand(mask.shape)
        metrics = {}
        if self.fitted >= self.warmup:
            rollout.critic = FittedCritic(self.make_predictor())
            values = torch.zeros_like(rollout.old_logprobs)
            values[rows, places] = rollout.critic.predict(features)
            rollout.values = values
            metrics = describe_values(rollout)
            if self.lam < 1:
                returns = values + generalized_advantages(rollout.rewards, values, mask, self.lam)
        else:
            rollout.critic_weight = 0.0
        judged = counted[rows, places]
        gathered = [gather_over_processes(part)[0] for part in (features[judged], returns[rows, places][judged])]
        seed = sampling_seeds(self.run_seed, rollout.step, [OPERATORS + stream_number(self.label)], [0])[0]
        if len(gathered[0]):
            loss = self.learn(gathered[0], gathered[1], torch.Generator().manual_seed(seed))
            metrics = {**metrics, "loss": loss}
            self.fitted += 1
        return metrics


def describe_values(rollout: Rollout) -> Metrics:
    """Return how good the values of a rollout are: Brier score, that of the group mean, skill and calibration.

    ``calibration`` is the slope of the reward on the values, both less the mean reward of the group's others: one where
    differences of values are as large as those of rewards that follow, below one where they are exaggerated.
    """
    brier, baseline = critic_briers(rollout.values, rollout.judged_rewards, rollout.mask, rollout.group_size)
    together, own = calibration_sums(rollout.values, rollout.judged_rewards, rollout.mask, rollout.group_size)
    return {
        "brier": brier,
        "brier_group": baseline,
        "skill": value_skill(brier, baseline),
        "calibration": (together / own).where(own > 0, 0),
    }
