"""Trees of a completion and the continuations that leave it: where it forks, and what credit each branch gets.

K forks lie along a completion, in the order of its tokens. Before each of them up to W continuations leave, and the
completion goes on as one branch more.
"""

import torch
from torch import Tensor

from rlcredit.formulas.groups import leave_one_out_deviations


def fork_places(priority: Tensor, allowed: Tensor, numbers: Tensor, forks: int, spacing: int) -> Tensor:
    """Return the allowed places of highest priority, each at least some tokens from those chosen before.

    Args:
        priority: Number that is higher the sooner a place is chosen, shape ``(B, T)``.
        allowed: False where there may be no fork, shape ``(B, T)`` bool.
        numbers: Number of each token among the sampled ones of its row, shape ``(B, T)``.
        forks: Most forks of a completion, K.
        spacing: Fewest sampled tokens between two forks.

    Returns:
        Ascending places, then -1 where there are fewer than K, shape ``(B, K)`` int64.

    Example:
        >>> priority = torch.tensor([[0.1, 0.9, 0.8, 0.5], [0.4, 0.1, 0.1, 0.1]])
        >>> fork_places(priority, priority > 0.3, torch.arange(4).expand(2, 4), forks=2, spacing=2)
        tensor([[ 1,  3],
                [ 0, -1]])

    """
    rows, width = allowed.shape
    place = torch.arange(width, device=allowed.device)
    fork_columns = [place.new_full((rows, 0), width)]
    for _ in range(forks if width else 0):
        best = priority.double().where(allowed, -torch.inf).argmax(-1, keepdim=True)
        fork_columns.append(best.where(allowed.any(-1, keepdim=True), width))
        allowed = allowed & ((numbers - numbers.gather(1, best)).abs() >= spacing)
    places = torch.cat(fork_columns, -1).sort(-1).values
    return places.where(places < width, -1)


def places_in_order(mask: Tensor) -> Tensor:
    """Return the places that are marked, ascending, then -1, shape ``(B, K)``, K being the most of a row.

    Args:
        mask: True on some places, shape ``(B, T)`` bool.

    Example:
        >>> places_in_order(torch.tensor([[True, False, True], [False, True, False]]))
        tensor([[ 0,  2],
                [ 1, -1]])

    """
    width = int(mask.sum(-1).max()) if len(mask) else 0
    place = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return fork_places(-place, mask, place, width, spacing=1)


def forks_passed(forks: Tensor, width: int) -> Tensor:
    """Return the number of forks at or before each token, shape ``(B, T)`` int64.

    Args:
        forks: Places of forks, -1 for none, shape ``(B, K)``.
        width: Number of tokens, T.

    Example:
        >>> forks_passed(torch.tensor([[1, 3], [2, -1]]), width=4)
        tensor([[0, 1, 1, 2],
                [0, 0, 1, 1]])

    """
    place = torch.arange(width, device=forks.device)[:, None]
    return ((forks[:, None] >= 0) & (forks[:, None] <= place)).sum(-1)


def branch_values(rewards: Tensor, ends: Tensor) -> Tensor:
    r"""Return the mean reward below a completion's tokens behind k of its forks, each fork counting as one draw.

    .. math:: Q_K = r, \qquad Q_{k-1} = \frac{Q_k + \sum_w r_{k,w}}{1 + W_k}

    Args:
        rewards: Reward of each completion, NaN where there was no verdict, shape ``(B,)``.
        ends: Rewards of the continuations that leave at each fork, NaN for none, shape ``(B, K, W)``.

    Returns:
        Shape ``(B, K + 1)`` float64, the value of the prompt first; NaN without a verdict on the completion.

    Example:
        >>> branch_values(torch.tensor([0.0]), torch.tensor([[[1.0, 1.0], [1.0, torch.nan]]]))
        tensor([[0.8333, 0.5000, 0.0000]], dtype=torch.float64)

    """
    counts, sums = (~ends.isnan()).sum(-1), ends.double().nan_to_num(0).sum(-1)
    values = [rewards.double()]
    for fork in reversed(range(ends.shape[1])):
        values.append((values[-1] + sums[:, fork]) / (1 + counts[:, fork]))
    return torch.stack(values[::-1], 1)


def branch_credit(rewards: Tensor, ends: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    r"""Return the credit of a completion before and after each of its forks, and that of its continuations.

    .. math:: A_0 = Q_0 - \frac{1}{G-1} \sum_{j \ne i} Q_0^{(j)}, \qquad A_k = Q_k - \frac{1}{W_k} \sum_w r_{k,w},
        \qquad A_{k,w} = r_{k,w} - \frac{1}{W_k} \Bigl(Q_k + \sum_{v \ne w} r_{k,v}\Bigr)

    with the values Q of :func:`branch_values`. Before the first fork the baseline is that of the other completions of
    the prompt, behind a fork that of the other branches: given the prefix, none of them depends on the token that is
    credited. A continuation without a verdict counts as if it had not been decoded. Without continuations this is
    ``RLOO``.

    Args:
        rewards: Reward of each completion, NaN where there was no verdict, shape ``(B,)``, groups of ``group_size``
            neighbours.
        ends: Rewards of the continuations that leave at each fork, NaN for none, shape ``(B, K, W)``.
        group_size: Completions per prompt, G.

    Returns:
        Credit of tokens behind k forks, shape ``(B, K + 1)``, and of continuations, zero for none, shape ``(B, K,
        W)``; float64.

    Example:
        >>> ends = torch.tensor([[[1.0, 1.0]], [[torch.nan, torch.nan]]])
        >>> own, others = branch_credit(torch.tensor([0.0, 0.0]), ends, group_size=2)
        >>> [round(credit, 3) for credit in own[0].tolist()], others[0].tolist(), round(own[1, 0].item(), 3)
        ([0.667, -1.0], [[0.5, 0.5]], -0.667)

    """
    values, has_end = branch_values(rewards, ends), ~ends.isnan()
    counts, end_values = has_end.sum(-1), ends.double().where(has_end, 0)
    sums = end_values.sum(-1)
    deviations = values[:, 1:] - sums / counts.clamp(min=1)
    row_parts = [leave_one_out_deviations(values[:, 0], group_size).flatten()]
    for fork in range(ends.shape[1]):
        row_parts.append(deviations[:, fork].where(counts[:, fork] > 0, row_parts[-1]))
    siblings = values[:, 1:, None] + sums[..., None] - end_values
    branch_parts = end_values - siblings / counts[..., None].clamp(min=1)
    return torch.stack(row_parts, 1).where(~rewards.isnan()[:, None], 0), branch_parts.where(has_end, 0)


def branch_shares(ends: Tensor) -> Tensor:
    r"""Return the share of its prompt's mass that a branch stands for, :math:`\prod_{j \le k} (1 + W_j)^{-1}`.

    Every fork splits the mass of its prefix equally among the completion and the continuations. With these weights the
    gradient of a tree estimates that of the policy; with equal ones it leans towards the states behind forks.

    Args:
        ends: Rewards of the continuations that leave at each fork, NaN for none, shape ``(B, K, W)``.

    Returns:
        Share behind k forks, shape ``(B, K + 1)`` float64; continuations that leave at fork k have that behind it.

    Example:
        >>> branch_shares(torch.tensor([[[1.0, 0.0], [0.0, torch.nan]]]))
        tensor([[1.0000, 0.3333, 0.1667]], dtype=torch.float64)

    """
    row_share = 1 / (1 + (~ends.isnan()).sum(-1).double())
    return torch.cat([row_share.new_ones(len(ends), 1), row_share], 1).cumprod(1)
