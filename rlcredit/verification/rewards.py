"""Turn verdicts into rewards."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from rlcredit.base.exit_status import RunStopped
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.formulas.masked import masked_mean
from rlcredit.verification.verifiers import Verdict


class Scores(NamedTuple):
    """What a task says of some completions.

    Attributes:
        verdicts: Verdict on each, B of them.
        rewards: Reward of each, NaN where there is none, shape ``(B,)`` float32; None if the verdicts are the rewards.
        parts: Rewards by each reward function, by its name, NaN where it does not apply; empty without any.

    """

    verdicts: Sequence[Verdict]
    rewards: Tensor | None = None
    parts: Mapping[str, Tensor] = MappingProxyType({})


def mean_rewards(scores: Sequence[Scores]) -> dict[str, float]:
    """Return the mean of what each reward function gave, over the completions to which it applies; zero if to none.

    Example:
        >>> mean_rewards([Scores([], None, {"has_format": torch.tensor([1.0, torch.nan, 0.5])})])
        {'has_format': 0.75}

    """
    values_by_name = {name: torch.cat([score.parts[name] for score in scores]) for name in scores[0].parts}
    return {name: masked_mean(values, ~values.isnan()).item() for name, values in values_by_name.items()}


def verdict_mask(verdicts: Sequence[Verdict], *kinds: Verdict) -> Tensor:
    """Mark verdicts of some kinds, shape ``(B,)`` bool."""
    return torch.tensor([verdict in kinds for verdict in verdicts])


def judged_mask(verdicts: Sequence[Verdict]) -> Tensor:
    """Mark completions that the verifier could judge, shape ``(B,)`` bool."""
    return ~verdict_mask(verdicts, Verdict.UNJUDGED)


def require_verdicts(verdicts: Sequence[Verdict], size: int, task: object) -> Sequence[Verdict]:
    """Return the verdicts after checking that there is one per completion.

    Args:
        verdicts: Verdicts that ``task.judge`` returned.
        size: Number of completions, B.
        task: Task whose class is named in the error.

    Raises:
        RunStopped: one is a bool or a number, any of which would count as wrong, or they are not B.

    """
    name = type(task).__name__
    if strange := [verdict for verdict in verdicts if not isinstance(verdict, Verdict)]:
        raise RunStopped(
            f"{name}.judge must return a list of rlcredit.verification.verifiers.Verdict, got {strange[0]!r} of type "
            f"{type(strange[0]).__name__}. Return Verdict.RIGHT, Verdict.WRONG, Verdict.NO_ANSWER or Verdict.UNJUDGED."
        )
    if len(verdicts) != size:
        raise RunStopped(f"{name}.judge must return a verdict for each of {size} completions, got {len(verdicts)}.")
    return verdicts


def verdict_rewards(right: Tensor, judged: Tensor, group_size: int) -> Tensor:
    """Reward one for right and zero for wrong; the unjudged get the mean of their group's judged.

    Under any baseline that is the mean of the group, that is no credit at all, and it moves nobody else's.

    Args:
        right: True where the completion is right, shape ``(B,)`` bool, groups of ``group_size`` neighbours.
        judged: False where the verifier could not tell, shape ``(B,)`` bool.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B,)`` float32; zero in a group without any verdict.

    Example:
        >>> right, judged = torch.tensor([True, False, False]), torch.tensor([True, True, False])
        >>> verdict_rewards(right, judged, group_size=3)
        tensor([1.0000, 0.0000, 0.5000])

    """
    return group_imputed_values(right.float(), judged, group_size)
