"""The most extreme tokens of a completion, of a group or of a batch."""

from typing import Literal, get_args

import torch
from torch import Tensor

from rlcredit.formulas.distributed import gather_over_processes, sum_over_processes
from rlcredit.formulas.masked import masked_topk
from rlcredit.formulas.parameter_choices import require_choice

Scope = Literal["sequence", "group", "batch"]
"""A token is compared with those of its completion, of its prompt's group, or of the batch on all processes."""


def top_share_mask(
    values: Tensor, mask: Tensor, share: float, scope: Scope, group_size: int, keep_ties: bool = False
) -> Tensor:
    """Mark the share of tokens with the largest values inside each scope; see :func:`masked_topk`.

    Args:
        values: One value per token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        share: Share of the tokens of each scope that is marked, in [0, 1].
        scope: Tokens among which values are compared.
        group_size: Completions per prompt G; used by the scope ``group`` only.
        keep_ties: Whether to mark also whatever equals the smallest value marked.

    Returns:
        Boolean, shape ``(B, T)``.

    """
    require_choice("top_share", "scope", scope, get_args(Scope))
    if scope == "batch":
        all_values, own_part = gather_over_processes(values[mask])
        selection = masked_topk(all_values, torch.ones_like(all_values, dtype=torch.bool), share, keep_ties)
        return torch.zeros_like(mask).masked_scatter(mask, selection[own_part])
    rows = scope_count(mask, scope, group_size)
    return masked_topk(values.reshape(rows, -1), mask.reshape(rows, -1), share, keep_ties).view(mask.shape)


def scope_count(mask: Tensor, scope: Scope, group_size: int) -> int:
    """Return the number of scopes in this process."""
    return {"sequence": len(mask), "group": len(mask) // group_size, "batch": 1}[scope]


def kept_token_share(kept: Tensor, mask: Tensor, scope: Scope, group_size: int) -> Tensor:
    """Return the share of its scope's tokens that is kept, for every token.

    Args:
        kept: True on tokens that are kept, boolean, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        scope: Tokens over which the share is taken.
        group_size: Completions per prompt G; used by the scope ``group`` only.

    Returns:
        Shape ``(B, 1)``; one where the scope has no tokens or keeps none.

    """
    rows = scope_count(mask, scope, group_size)
    counts = torch.stack([(kept & mask).reshape(rows, -1).sum(-1), mask.reshape(rows, -1).sum(-1)]).float()
    kept_counts, token_counts = sum_over_processes(counts) if scope == "batch" else counts
    share = (kept_counts / token_counts).where(kept_counts > 0, 1.0)
    return share.repeat_interleave(len(mask) // rows)[:, None]
