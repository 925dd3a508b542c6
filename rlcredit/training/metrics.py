"""What is logged about a rollout, an update and a validation; the names are the same in every condition."""

import torch
from torch import Tensor
from torchmetrics import Metric

from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import mixed_groups, unanimous_groups
from rlcredit.formulas.masked import masked_mean, masked_quantiles
from rlcredit.formulas.turns import count_turns, find_read_lengths
from rlcredit.formulas.uncertainty import surprisal
from rlcredit.losses.base import bounded_ratio
from rlcredit.losses.kl_penalty import kl_estimate
from rlcredit.statistics.accuracy_at_k import pass_at_k

SURPRISAL_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def sampling_metrics(rollout: Rollout) -> dict[str, Tensor]:
    """Describe the batch: groups that teach nothing are counted, not skipped (dynamic sampling has replaced some)."""
    all_right, all_wrong = unanimous_groups(rollout.verdicts, rollout.group_size)
    is_mixed, is_judged = (
        mixed_groups(rollout.given_rewards, rollout.group_size),
        rollout.judged.view(len(all_right), -1),
    )
    surprise = surprisal(rollout.old_logprobs)
    quantiles = masked_quantiles(surprise, rollout.mask, list(SURPRISAL_QUANTILES.values()))
    return {
        "train/reward": masked_mean(rollout.rewards, rollout.judged),
        "train/completion_length": rollout.mask.sum(-1).float().mean(),
        "train/zero_variance": (is_judged.any(-1) & ~is_mixed).float().mean(),
        "train/zero_variance_all_right": all_right.float().mean(),
        "train/zero_variance_all_wrong": all_wrong.float().mean(),
        "train/entropy": masked_mean(rollout.entropy, rollout.mask),
        "train/surprisal": masked_mean(surprise, rollout.mask),
        **{f"train/surprisal_{name}": value for name, value in zip(SURPRISAL_QUANTILES, quantiles, strict=True)},
    }


def episode_metrics(rollout: Rollout) -> dict[str, Tensor]:
    """Describe the episodes of a task with an environment: their turns, and what they read beside what they sample."""
    observation_tokens = find_read_lengths(rollout.mask) - rollout.mask.sum(-1)
    return {
        "train/turns": count_turns(rollout.turn).float().mean(),
        "train/observation_tokens": observation_tokens.float().mean(),
    }


def policy_metrics(rollout: Rollout, rows: Tensor) -> dict[str, Tensor]:
    """Compare trainer and sampler on the rows that were scored: on policy the ratio is one, the divergence zero."""
    tokens = rollout.mask & rows[:, None]
    trainer_logprobs, sampler_logprobs = rollout.logprobs.detach()[tokens], rollout.old_logprobs[tokens]
    return {
        "train/ratio_min": bounded_ratio((trainer_logprobs - sampler_logprobs).min()),
        "train/ratio_max": bounded_ratio((trainer_logprobs - sampler_logprobs).max()),
        # E[exp(d) - 1 - d] is KL(sampler || trainer), and no single token makes it negative.
        "train/kl_sampler": kl_estimate(sampler_logprobs, trainer_logprobs).mean(),
    }


class MeanPassAtK(Metric):
    """Unbiased pass@k, averaged over questions and over processes.

    Args:
        k: Number of completions that may be tried.

    """

    full_state_update = False
    total: Tensor
    questions: Tensor

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.add_state("total", torch.tensor(0.0, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("questions", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, right: Tensor) -> None:
        """Add questions; ``right`` is boolean, shape ``(P, G)``."""
        estimates = pass_at_k(right.shape[1], right.sum(-1).cpu().numpy(), self.k)
        # Rebound, not added in place: an earlier validation may have left inference tensors.
        self.total = self.total + float(estimates.sum())
        self.questions = self.questions + len(right)

    def compute(self) -> Tensor:
        """Return the mean over all questions seen."""
        return (self.total / self.questions).float()
