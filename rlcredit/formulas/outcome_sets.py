"""Right and wrong completions of a group as two sets, each shaped and normalised separately."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.formulas.masked import masked_mean, masked_var

NormSet = Literal["own", "all"]
"""Over which tokens a shaped reward is standardised: those of its own set, or of both, the other set's being zero."""


def shaped_rewards(
    verdicts: Tensor, entropy: Tensor, mask: Tensor, group_size: int, base: float, bonus: float, floor: float
) -> tuple[Tensor, Tensor]:
    r"""Distribute a bonus for right and a malus for wrong answers over the completions alive at each position.

    .. math:: \tilde r^+_{i,t} = \alpha_1 + \alpha_2 \frac{H_{i,t}}{\sum_{k \in O^+} H_{k,t}}\, d_t, \qquad
        \tilde r^-_{j,t} = -\alpha_1 - \alpha_2 \frac{1 / H_{j,t}}{\sum_{k \in O^-} 1 / H_{k,t}}\, h_t

    with :math:`d_t` right and :math:`h_t` wrong completions of the group alive at t. Eq. 3 and 5 of Tan et al. (2025,
    arXiv:2508.04349).

    Args:
        verdicts: 1 for right, 0 for wrong; any other value is in neither set, shape ``(B,)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        base: Base reward, :math:`\alpha_1`.
        bonus: Size of the bonus and of the malus, :math:`\alpha_2`.
        floor: Smallest entropy that is divided by.

    Returns:
        Shaped rewards of both sets, shape ``(2, P, G, T)`` float64, and where each is defined.

    """
    alive = mask.view(-1, group_size, mask.shape[-1])
    verdict = verdicts.view(-1, group_size, 1)
    members = torch.stack([alive & (verdict == 1), alive & (verdict == 0)])
    certain = entropy.view(alive.shape).double().clamp(min=floor)
    weights = torch.stack([certain, 1 / certain]).where(members, 0)
    share = weights / weights.sum(2, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    sign = weights.new_tensor([1.0, -1.0]).view(2, 1, 1, 1)
    return (sign * (base + bonus * share * members.sum(2, keepdim=True))).where(members, 0), members


def outcome_normalized(shaped: Tensor, members: Tensor, norm_set: NormSet) -> Tensor:
    """Standardise each set inside its group and put both into one tensor.

    Over its own set, a binary outcome disappears: each set has mean zero, and half of the tokens of right answers get
    negative credit. With the other set's tokens counted at zero, signs survive as long as both sets are large.

    Args:
        shaped: Rewards as :func:`shaped_rewards` returns them, shape ``(2, P, G, T)``.
        members: Membership of each token in the two sets, as :func:`shaped_rewards` returns it, bool.
        norm_set: Tokens that count.

    Returns:
        Shape ``(P * G, T)`` float64; zero in neither set, and where nothing varies.

    """
    norm_members = members if norm_set == "own" else members.any(0, keepdim=True).expand(members.shape)
    values, norm_mask = shaped.flatten(2), norm_members.flatten(2)
    deviation = masked_var(values, norm_mask, dim=-1, keepdim=True).sqrt()
    standard = (values - masked_mean(values, norm_mask, dim=-1, keepdim=True)) / deviation
    normal_values = standard.where(members.flatten(2) & (deviation > 1e-9), 0)
    return normal_values.sum(0).view(-1, shaped.shape[-1])
