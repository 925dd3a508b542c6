"""Credit by continuations that are trained on: decode them at the forks of completions, and share the credit out."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.branches import branch_credit, branch_shares, branch_values, forks_passed
from rlcredit.formulas.masked import masked_mean

BranchWeights = Literal["on_policy", "equal"]
"""Weight of a branch: its share of its prompt's mass, or one."""

Training = Literal["none", "on_policy", "equal"]
"""The same of continuations that may only measure."""


def credit_branches(rollout: Rollout, forks: Tensor, width: int, train: BranchWeights) -> dict[str, Tensor | float]:
    """Continue completions at their forks, and write the credit of their tokens and of the continuations.

    See :func:`rlcredit.formulas.branches.branch_credit`.

    Args:
        rollout: Rollout with an oracle; advantages and continuations are rebound.
        forks: Ascending places of forks in judged completions, then -1, shape ``(B, K)``.
        width: Continuations per fork, W.
        train: Weight of a branch.

    Returns:
        Metrics: tokens decoded, mean value of the prompts, forks per completion, and the share of tokens with credit.

    """
    mask, decoded_count = rollout.judged_mask, rollout.oracle.decoded
    rows, numbers = (forks >= 0).nonzero(as_tuple=True)
    branch_tokens, verdicts = rollout.oracle.continue_prefixes(rollout, rows, forks[rows, numbers], width)
    ends = torch.full((*forks.shape, width), torch.nan, dtype=torch.float64, device=mask.device)
    ends[rows, numbers] = verdicts
    row_credit, branch_credits = branch_credit(rollout.verdicts, ends, rollout.group_size)
    if train == "on_policy":
        shares = branch_shares(ends)
        row_credit, branch_credits = row_credit * shares, branch_credits * shares[:, 1:, None]
    credit = row_credit.gather(1, forks_passed(forks, mask.shape[1])).where(mask, 0).float()
    rollout.advantages = credit
    rollout.continuations = branch_tokens._replace(
        credit=branch_credits[rows, numbers].flatten()[:, None].float() * branch_tokens.mask
    )
    return {
        "decoded_tokens": float(rollout.oracle.decoded - decoded_count),
        "value": masked_mean(branch_values(rollout.verdicts, ends)[:, 0], rollout.judged).float(),
        "forks": len(rows) / len(mask),
        "credited_fraction": masked_mean((credit != 0).float(), mask),
    }
