"""A critic: an operator that estimates what prefixes are worth, and learns from each rollout after it has judged it."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import FIRST_OPERATOR_PROMPT, sampling_seeds, stream_number
from rlcredit.formulas.distributed import gather_over_processes, sum_over_processes
from rlcredit.formulas.groups import leave_one_out_means
from rlcredit.formulas.prefix_statistics import prefix_statistics
from rlcredit.formulas.reward_histogram import RewardRangeError
from rlcredit.formulas.value_estimates import (
    calibration_sums,
    critic_briers,
    generalized_advantages,
    value_skill,
)


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
    """Return the features of prefixes: hidden state, path and the mean reward of the group's others.

    Hidden states are divided by their root mean square, so that features are of order one in any model.

    Args:
        rollout: Rollout that the prefixes belong to, or branch off from.
        rows: Row of each prefix, shape ``(N,)``.
        hidden: Last hidden state of each prefix, shape ``(N, D)``.
        path: Statistics of each prefix, shape ``(N, S)``.

    Returns:
        Shape ``(N, D + S + 1)`` float32.

    """
    companion_means = leave_one_out_means(rollout.judged_rewards, rollout.group_size)[rows, None]
    states = hidden.float()
    scale = states.square().mean(-1, keepdim=True).sqrt().clamp(min=torch.finfo(torch.float32).tiny)
    return torch.cat([states / scale, path, companion_means], -1)


def make_noise(operator: CreditOperator, rollout: Rollout) -> torch.Generator:
    """Return a source of random numbers on the CPU, named by the run's seed, the step and an operator."""
    stream = FIRST_OPERATOR_PROMPT + stream_number(operator.label)
    return torch.Generator().manual_seed(sampling_seeds(operator.run_seed, rollout.step, [stream], [0])[0])


class Critic(
    CreditOperator,
    reads="judged old_logprobs returns rewards step",
    writes="critic_weight values",
    state="fitted",
    costly=True,
):
    """Base of critics: judge a rollout as earlier ones have taught, then learn from it.

    What is learned are the ``returns`` of the ledger: rewards, unless an operator above has put something better in
    their place. Until it has learned from ``warmup`` rollouts, values stay neutral and have no weight; from then on
    they are the critic's and have all of it, whatever a critic above has said and weighed.

    Args:
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of what it learns; 1 is the return itself, less learns from rewards and its own values alone.

    """

    def __init__(self, warmup: int = 1, lam: float = 1.0) -> None:
        super().__init__()
        if warmup < 1 or not 0 <= lam <= 1:
            raise ValueError(
                f"{type(self).__name__} expects warmup >= 1 and lam from 0 to 1, got {warmup} and {lam:g}."
            )
        self.warmup = warmup
        self.lam = lam
        self.fitted = 0
        if lam < 1:
            self.reads = self.reads - {"returns"}

    @abstractmethod
    def judge(self, rollout: Rollout) -> Tensor:
        """Return the value of the prefix before each token, shape ``(B, T)``; anything on padding."""

    @abstractmethod
    def learn(self, rollout: Rollout, returns: Tensor) -> Tensor:
        """Learn from a rollout, of several processes together, so that they stay equal.

        Args:
            rollout: Rollout that has been judged; some of its completions, in one of the processes, have a verdict.
            returns: Return behind each prefix, shape ``(B, T)``; those of judged completions count.

        Returns:
            Loss, a scalar.

        """

    def assign(self, rollout: Rollout) -> Metrics:
        """Estimate values; log how good they are on this rollout, which the critic has not seen, and the loss."""
        metrics: Metrics = {}
        if self.fitted >= self.warmup:
            rollout.values = self.judge(rollout).where(rollout.mask, 0)
            rollout.critic_weight = 1.0
            metrics = describe_values(rollout)
        else:
            rollout.make_neutral("values")
            rollout.critic_weight = 0.0
        if not sum_over_processes(rollout.judged_mask.sum()):
            return metrics
        try:
            loss = self.learn(rollout, rollout.returns if self.lam == 1 else self._lean_on_values(rollout))
        except RewardRangeError as error:
            raise StackError(f"{self.label}: {error}") from None
        self.fitted += 1
        return {**metrics, "loss": loss}

    def _lean_on_values(self, rollout: Rollout) -> Tensor:
        """Return the returns of lambda, which lean on the critic's values once it has some, shape ``(B, T)``."""
        rewards, values = rollout.rewards, rollout.values
        if not rollout.critic_weight:
            return rewards[:, None].expand(rollout.mask.shape)
        return values + generalized_advantages(rewards, values, rollout.mask, self.lam)


class FeatureCritic(
    Critic,
    reads="hidden judged old_logprobs returns rewards step",
    writes="critic critic_weight values",
):
    """Base of critics that see hidden states of the policy, and so can judge prefixes that were not sampled.

    A subclass says how it fits features (:meth:`fit`) and what it predicts then (:meth:`make_predictor`). Of several
    processes each one fits the prefixes of all, in the same order and with the same noise.
    """

    @abstractmethod
    def fit(self, features: Tensor, returns: Tensor, noise: torch.Generator) -> Tensor:
        """Learn from the prefixes of a rollout.

        Args:
            features: Features of prefixes, shape ``(N, F)``.
            returns: Return of each, shape ``(N,)``.
            noise: Source of all random numbers, on the CPU.

        Returns:
            Loss, a scalar.

        """

    @abstractmethod
    def make_predictor(self) -> Callable[[Tensor], Tensor]:
        """Return the critic as it is, a function from features, ``(N, F)``, to values, ``(N,)``."""

    def describe_prefixes(self, rollout: Rollout, token_mask: Tensor) -> Tensor:
        """Return the features of the prefixes before the tokens of a mask ``(B, T)``, shape ``(N, F)``."""
        path = prefix_statistics(-rollout.old_logprobs, rollout.mask)
        return prefix_features(rollout, token_mask.nonzero()[:, 0], rollout.hidden[token_mask], path[token_mask])

    def judge(self, rollout: Rollout) -> Tensor:
        """Return the value of the prefix before each token; leave the critic in the ledger, if it is declared."""
        predict = self.make_predictor()
        if "critic" in self.writes:
            rollout.critic = FittedCritic(predict)
        values = torch.zeros_like(rollout.old_logprobs)
        values[rollout.mask] = predict(self.describe_prefixes(rollout, rollout.mask))
        return values

    def learn(self, rollout: Rollout, returns: Tensor) -> Tensor:
        """Fit the prefixes of the judged completions of all processes."""
        mask = rollout.judged_mask
        parts = (self.describe_prefixes(rollout, mask), returns[mask])
        features, targets = (gather_over_processes(part)[0] for part in parts)
        return self.fit(features, targets, make_noise(self, rollout))


def describe_values(rollout: Rollout) -> Metrics:
    """Return the quality of values: their Brier score, the group mean's, skill and calibration.

    ``calibration`` is the slope of the reward on the values, both as changes from the start of a completion; see
    :func:`rlcredit.formulas.value_estimates.calibration_sums`.
    """
    brier, baseline = critic_briers(rollout.values, rollout.judged_rewards, rollout.mask, rollout.group_size)
    covariance, variance = calibration_sums(rollout.values, rollout.judged_rewards, rollout.mask)
    return {
        "brier": brier,
        "brier_group": baseline,
        "skill": value_skill(brier, baseline),
        "calibration": (covariance / variance).where(variance > 0, 0),
    }
