"""Rewards and tokens relative to those of the same prompt; NaN rewards were not judged and do not count."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.formulas.masked import FLAT_DEVIATION, masked_mean, masked_var

ROUNDING_ERROR = 1e-6
"""Smaller differences of rewards are rounding: completions without verdict carry the mean of the judged ones."""


def group_deviations(rewards: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return each reward's distance from its group's mean, exactly zero where it is the mean, and the means.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        group_size: Completions per prompt, G.

    Returns:
        Deviations, zero without a verdict, shape ``(P, G)``; and means of the judged, zero if there are none, shape
        ``(P, 1)``; float64.

    Example:
        >>> import torch
        >>> deviations, means = group_deviations(torch.tensor([1.0, 0.0, 0.0, torch.nan, 0.0]), group_size=5)
        >>> deviations.tolist(), means.tolist()
        ([[0.75, -0.25, -0.25, 0.0, -0.25]], [[0.25]])

    """
    groups = rewards.view(-1, group_size).double()
    means = masked_mean(groups, ~groups.isnan(), dim=-1, keepdim=True)
    deviations = groups - means
    return deviations.where(deviations.abs() > ROUNDING_ERROR, 0), means


def judged_counts(rewards: Tensor, group_size: int) -> Tensor:
    """Return the number of judged completions of each group, shape ``(P, 1)`` float64; arguments as above.

    Example:
        >>> import torch
        >>> judged_counts(torch.tensor([1.0, torch.nan, 0.0, 0.0]), group_size=2)
        tensor([[1.],
                [2.]], dtype=torch.float64)

    """
    return (~rewards.isnan()).view(-1, group_size).sum(-1, keepdim=True).double()


def leave_one_out_means(rewards: Tensor, group_size: int) -> Tensor:
    """Return the mean reward of the group's other judged completions, zero if there are none; arguments as above.

    Returns:
        Shape ``(B,)`` float32.

    Example:
        >>> import torch
        >>> leave_one_out_means(torch.tensor([1.0, 0.0, torch.nan, 0.0]), group_size=4)
        tensor([0.0000, 0.5000, 0.3333, 0.5000])

    """
    groups = rewards.view(-1, group_size).double()
    verdict_mask = ~groups.isnan()
    verdicts = groups.where(verdict_mask, 0)
    companions = verdict_mask.sum(-1, keepdim=True) - verdict_mask.double()
    means = (verdicts.sum(-1, keepdim=True) - verdicts) / companions.clamp(min=1)
    return means.flatten().float()


def leave_one_out_deviations(rewards: Tensor, group_size: int) -> Tensor:
    r"""Return each reward's distance from the mean of the group's other judged ones; arguments as above.

    .. math:: r_i - \frac{1}{G-1} \sum_{j \ne i} r_j = \frac{G}{G-1} (r_i - \bar r)

    Returns:
        Shape ``(P, G)`` float64; zero without a verdict, and where it is the group's only one.

    Example:
        >>> import torch
        >>> leave_one_out_deviations(torch.tensor([1.0, 0.0, 0.0]), group_size=3)
        tensor([[ 1.0000, -0.5000, -0.5000]], dtype=torch.float64)

    """
    deviations, _ = group_deviations(rewards, group_size)
    counts = judged_counts(rewards, group_size)
    return counts / (counts - 1).clamp(min=1) * deviations


def selected_places(rows: Tensor, selection: Tensor, number: int) -> Tensor:
    """Return the place in a selection of the row of each entry, -1 where it is not selected.

    Args:
        rows: Row of each entry, shape ``(N,)`` int64.
        selection: Rows that are selected, each once, shape ``(M,)`` int64.
        number: Number of rows.

    Example:
        >>> import torch
        >>> selected_places(torch.tensor([0, 2, 2, 3]), torch.tensor([3, 2]), number=4).tolist()
        [-1, 1, 1, 0]

    """
    place_of = torch.full((number,), -1, device=rows.device)
    place_of[selection] = torch.arange(len(selection), device=rows.device)
    return place_of[rows]


def ranks_within_rows(rows: Tensor, number: int) -> Tensor:
    """Return the number of entries of the same row before each entry.

    Args:
        rows: Row of each entry, ascending, shape ``(N,)`` int64.
        number: Number of rows.

    Example:
        >>> import torch
        >>> ranks_within_rows(torch.tensor([0, 0, 2, 2, 2]), number=4).tolist()
        [0, 1, 0, 1, 2]

    """
    counts = torch.bincount(rows, minlength=number)
    return torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]


def group_std(rewards: Tensor, group_size: int) -> Tensor:
    """Return the unbiased deviation of each group's judged rewards, shape ``(P, 1)`` float64; arguments as above.

    Example:
        >>> import torch
        >>> group_std(torch.tensor([1.0, 0.0, torch.nan, torch.nan]), group_size=4)
        tensor([[0.7071]], dtype=torch.float64)

    """
    deviations, _ = group_deviations(rewards, group_size)
    # Those without a verdict lie at the mean and add no square; a single verdict has no unbiased deviation.
    of_all = deviations.std(-1, keepdim=True, correction=min(1, group_size - 1))
    return of_all * ((group_size - 1) / (judged_counts(rewards, group_size) - 1).clamp(min=1)).sqrt()


def group_imputed_values(values: Tensor, known: Tensor, group_size: int) -> Tensor:
    """Replace unknown values by the mean of the known values of their group.

    Args:
        values: Value of each completion, shape ``(B,)``, groups of ``group_size`` neighbours.
        known: True where the value is known, shape ``(B,)`` bool.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B,)``; zero in a group in which none is known.

    Example:
        >>> import torch
        >>> group_imputed_values(torch.tensor([1.0, 0.0, 9.0]), torch.tensor([True, True, False]), group_size=3)
        tensor([1.0000, 0.0000, 0.5000])

    """
    groups, known_groups = values.view(-1, group_size), known.view(-1, group_size)
    return groups.where(known_groups, masked_mean(groups, known_groups, dim=-1, keepdim=True)).flatten()


def unanimous_groups(verdicts: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return the masks of groups with right answers and no wrong ones, and with wrong ones and no right ones.

    Args:
        verdicts: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        group_size: Completions per prompt, G.

    Returns:
        Two of shape ``(P,)`` bool; a group without any verdict is in neither.

    Example:
        >>> import torch
        >>> unanimous_groups(torch.tensor([1.0, torch.nan, 0.0, 0.0, 1.0, 0.0]), group_size=2)
        (tensor([ True, False, False]), tensor([False,  True, False]))

    """
    groups = verdicts.view(-1, group_size)
    right, wrong = (groups == 1).any(-1), (groups == 0).any(-1)
    return right & ~wrong, wrong & ~right


GroupChoice = Literal["all_wrong", "all"]
"""Groups that an operator credits: those with wrong answers and no right one, or every group."""


def chosen_rows(verdicts: Tensor, group_size: int, groups: GroupChoice) -> Tensor:
    """Return the mask of judged completions in chosen groups.

    Args:
        verdicts: 1 for right, 0 for wrong, NaN where the verifier could not tell, shape ``(B,)``.
        group_size: Completions per prompt, G.
        groups: Groups that are chosen.

    Returns:
        Shape ``(B,)`` bool.

    Example:
        >>> import torch
        >>> chosen_rows(torch.tensor([1.0, 0.0, torch.nan, 0.0]), group_size=2, groups="all_wrong")
        tensor([False, False, False,  True])

    """
    judged_mask = ~verdicts.isnan()
    if groups == "all":
        return judged_mask
    return judged_mask & unanimous_groups(verdicts, group_size)[1].repeat_interleave(group_size)


def mixed_groups(rewards: Tensor, group_size: int) -> Tensor:
    """Return the mask of groups with different rewards, shape ``(P,)`` bool; arguments as for :func:`group_deviations`.

    Example:
        >>> import torch
        >>> mixed_groups(torch.tensor([1.0, 0.0, 0.5, torch.nan]), group_size=2)
        tensor([ True, False])

    """
    return (group_deviations(rewards, group_size)[0] != 0).any(-1)


def group_standardized(values: Tensor, mask: Tensor, group_size: int) -> Tensor:
    """Standardise over all tokens of each group, with the population deviation.

    Args:
        values: One value per token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B, T)``; zero where a group's values do not vary, and outside the mask.

    Example:
        >>> import torch
        >>> group_standardized(torch.tensor([[0.0, 2.0]]), torch.tensor([[True, True]]), group_size=1)
        tensor([[-1.,  1.]])

    """
    groups = len(mask) // group_size
    rows, group_mask = values.reshape(groups, -1), mask.reshape(groups, -1)
    deviation = masked_var(rows, group_mask, dim=-1, keepdim=True).sqrt()
    varies = deviation > FLAT_DEVIATION * masked_mean(rows.abs(), group_mask, dim=-1, keepdim=True)
    standard = (rows - masked_mean(rows, group_mask, dim=-1, keepdim=True)) / deviation
    return standard.where(group_mask & varies, 0).view(mask.shape)
