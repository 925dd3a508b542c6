"""Dynamic sampling: ask further prompts until enough groups are informative."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rlcredit.credit.rollout import Rollout, concatenate_rollouts
from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.formulas.groups import mixed_groups


@dataclass
class DynamicSampling:
    """Replace groups whose completions all earn the same, for all are right or all wrong, by those of further prompts.

    DAPO (Yu et al., 2025, arXiv:2503.14476). Every step draws ``rounds * prompts_per_step`` prompts from the shuffled
    set and asks ``prompts_per_step`` of them at a time until enough groups are informative; the rest is passed over.
    Groups that teach nothing fill what is missing after the last round, so that a batch has one size: those with a
    verdict first.

    Args:
        rounds: Most times that a step samples prompts; 1 is plain sampling. DAPO uses 10.

    """

    rounds: int = 10

    def __post_init__(self) -> None:
        """Refuse a number of rounds below one."""
        if self.rounds < 1:
            raise ValueError(f"DynamicSampling expects rounds >= 1, got {self.rounds}.")


def informative_groups(rollout: Rollout) -> Tensor:
    """Find the groups that hold different rewards, as right and wrong answers earn them, shape ``(P,)`` bool."""
    return mixed_groups(rollout.given_rewards, rollout.group_size)


def sample_until_informative(rounds: Iterator[Rollout], prompts: int) -> tuple[Rollout, dict[str, float]]:
    """Sample rounds until this process, like all others, has enough informative groups.

    Args:
        rounds: Rollouts of ``prompts`` groups each, sampled when asked for.
        prompts: Number of groups wanted.

    Returns:
        A rollout of as many groups, in the order they were sampled; and how many rounds it took and which share of all
        groups sampled was informative.

    """
    rollouts = []
    for rollout in rounds:
        rollouts.append(rollout)
        missing = prompts - sum(int(informative_groups(part).sum()) for part in rollouts)
        if sum_over_processes(torch.tensor(max(0, missing), device=rollout.mask.device)) == 0:
            break
    candidates = concatenate_rollouts(rollouts)
    useful = informative_groups(candidates)
    is_judged = candidates.judged.view(-1, candidates.group_size).any(-1)
    groups = (useful.int() + is_judged.int()).argsort(descending=True, stable=True)[:prompts].sort().values
    rows = groups[:, None] * candidates.group_size + torch.arange(candidates.group_size, device=groups.device)
    metrics = {"sampling_rounds": float(len(rollouts)), "informative_groups": useful.float().mean().item()}
    return candidates.select_rows(rows.flatten()), metrics
