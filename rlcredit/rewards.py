"""Verdicts to rewards."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rlcredit.functional.groups import group_filled
from rlcredit.verifiers import Verdict


def are(verdicts: Sequence[Verdict], *kinds: Verdict) -> Tensor:
    """Return where a verdict is of one of the kinds, shape ``(B,)`` bool."""
    return torch.tensor([verdict in kinds for verdict in verdicts])


def rewards(right: Tensor, judged: Tensor, group_size: int) -> Tensor:
    """Reward one for right and zero for wrong; the unjudged get the mean of their group's judged.

    Under any baseline that is the mean of the group, that is no credit at all, and it moves nobody else's.

    Args:
        right: shape ``(B,)`` bool, groups of ``group_size`` neighbours.
        judged: false where the verifier could not tell, shape ``(B,)`` bool.
        group_size: G.

    Returns:
        Shape ``(B,)`` float32; zero in a group without any verdict.

    Example:
        >>> right, judged = torch.tensor([True, False, False]), torch.tensor([True, True, False])
        >>> rewards(right, judged, group_size=3)
        tensor([1.0000, 0.0000, 0.5000])

    """
    return group_filled(right.float(), judged, group_size)
