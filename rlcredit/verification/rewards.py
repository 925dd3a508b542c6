"""Turn verdicts into rewards."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rlcredit.base.exit_status import RunStopped
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.verification.verifiers import Verdict


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
