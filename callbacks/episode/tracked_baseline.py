"""Tracked baseline: a completion is worth what it earns above what its prompt has earned so far."""

import hashlib

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import gather_over_processes
from rlcredit.formulas.groups import ROUNDING_ERROR
from rlcredit.formulas.masked import masked_sum


def prompt_key(prompt_ids: Tensor) -> int:
    """Return a number of 63 bits that a prompt keeps in every batch and process.

    Args:
        prompt_ids: Token ids, -1 on the left as padding, shape ``(L,)``.

    Example:
        >>> prompt_key(torch.tensor([-1, 5, 6])) == prompt_key(torch.tensor([5, 6])) != prompt_key(torch.tensor([6, 5]))
        True

    """
    text = str(prompt_ids[prompt_ids >= 0].tolist())
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def tracked_mean(old_mean: float | None, mean: float, rate: float) -> float:
    r"""Move a tracked mean towards a new one, or begin with it.

    .. math:: b_x \leftarrow (1 - \rho)\, b_x + \rho\, \bar r_x

    Args:
        old_mean: Mean tracked so far; None if there is none.
        mean: Mean reward of the prompt in this batch.
        rate: Rate in (0, 1]; 1 remembers the last batch only.

    Example:
        >>> tracked_mean(None, 0.5, rate=0.25), tracked_mean(0.5, 1.0, rate=0.25)
        (0.5, 0.625)

    """
    return mean if old_mean is None else (1 - rate) * old_mean + rate * mean


class TrackedBaseline(CreditOperator, reads="judged prompt_ids rewards", writes="advantages", state="means"):
    """Subtract the mean reward that a prompt has earned in earlier batches, :func:`tracked_mean` of each.

    LSTAE (arXiv:2609.06671), for groups of any size: what is tracked is the mean of a group, and a group of one is its
    reward. A prompt that is new has the mean of its completions in the batch, as under ``GRPO``; a single completion
    teaches nothing the first time. From then on the baseline is independent of the rewards it is subtracted from. Every
    process holds the means of all prompts, which are exchanged at every step: a checkpoint stores those of the first,
    and a prompt may come to another process next time. Put it where ``GRPO`` would stand.

    Args:
        rate: Rate of the tracking, per batch with the prompt; ours, since we do not have the paper's.

    """

    def __init__(self, rate: float = 0.2) -> None:
        super().__init__()
        if not 0 < rate <= 1:
            raise ValueError(f"TrackedBaseline expects rate in (0, 1], got {rate}. A rate of 0 would learn nothing.")
        self.rate = rate
        self.means: dict[int, float] = {}

    def assign(self, rollout: Rollout) -> Metrics:
        """Subtract what was tracked before this batch, then track it; log the share of prompts seen before."""
        rewards = rollout.judged_rewards.view(-1, rollout.group_size).double()
        has_verdict = ~rewards.isnan()
        keys = [prompt_key(ids) for ids in rollout.prompt_ids[:: rollout.group_size]]
        sums = masked_sum(rewards, has_verdict, dim=-1)
        facts = (torch.tensor(keys, device=rewards.device), sums, has_verdict.sum(-1))
        totals: dict[int, list[float]] = {}
        for key, total, count in zip(*(gather_over_processes(fact)[0].tolist() for fact in facts), strict=True):
            old_total = totals.get(key, (0.0, 0))
            totals[key] = [old_total[0] + total, old_total[1] + count]
        fresh = {key: total / count for key, (total, count) in totals.items() if count}
        baselines = rewards.new_tensor([self.means.get(key, fresh.get(key, 0.0)) for key in keys])
        deviations = (rewards - baselines[:, None]).flatten()
        advantages = deviations.where(deviations.abs() > ROUNDING_ERROR, 0).to(rollout.rewards.dtype)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        hits = sum(key in self.means for key in keys) / len(keys)
        new_means = {key: tracked_mean(self.means.get(key), mean, self.rate) for key, mean in fresh.items()}
        self.means = {**self.means, **new_means}
        return {"seen_fraction": hits, "baseline_mean": baselines.mean(), "tracked_prompts": float(len(self.means))}

    def bound(self, limit: float, group_size: int) -> float:
        """A baseline lies between the smallest and the largest reward."""
        return 1.0
