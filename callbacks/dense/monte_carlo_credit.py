"""Monte-Carlo credit: how each segment of a completion changed the chance of a right answer, by sampling the policy."""

import math
from typing import Literal, get_args

from torch import Tensor

from rlcredit.credit.branching import Training, credit_branches
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.branches import places_in_order
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.segments import Cuts, segment_differences, segment_starts
from rlcredit.formulas.uncertainty import token_odds

Baseline = Literal["value", "optimal"]


def optimal_baseline_credit(credit: Tensor, logprobs: Tensor) -> Tensor:
    r"""Move true advantages of tokens to the baseline under which their gradient varies least.

    .. math:: A_t\, \frac{\pi_t}{1 - \pi_t}

    A baseline leaves the expected gradient as it is. The optimal one weighs the values of the tokens by the squared
    lengths of their scores (Greensmith, Bartlett and Baxter, 2004; of a state, Keane and Gao, 2022, arXiv:2212.13587).
    For two tokens with the values Q and Q' it is :math:`(1 - \pi) Q + \pi Q'`, and whichever of them is drawn, the
    gradient with respect to the logits is the expected one. So a rare slip is hardly punished; instead the token that
    is nearly always drawn in its place is rewarded for avoiding it.

    With more than two tokens, those not drawn count as one. This changes the expected gradient: rare alternatives to a
    likely token are not told apart, and where k tokens are equally likely it is shorter by the factor 1 / (k - 1).

    Args:
        credit: Value behind the token less that of its prefix, shape ``(B, T)``.
        logprobs: :math:`\log \pi_t` of the token, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``; zero where the token was sure, and unbounded near it if the credit is an estimate.

    Example:
        >>> import torch
        >>> optimal_baseline_credit(torch.tensor([[0.1, -0.9]]), torch.tensor([[0.9, 0.1]]).log())
        tensor([[ 0.9000, -0.1000]])

    """
    return (credit * token_odds(logprobs)).to(credit.dtype)


class MonteCarloCredit(CreditOperator, reads="correct judged oracle tokens turn", writes="advantages", costly=True):
    r"""Give every token the difference that its segment makes, :math:`A_t = V_{end} - V_{start}`.

    The value of a prefix is the share of right ones among its continuations by the policy itself; at the end it is the
    verdict. With sentences this is the advantage of VinePPO (Kazemnejad et al., 2024, arXiv:2410.01679), without its
    loss. With tokens it estimates the true advantage without bias, with noise that falls as one over the root of
    ``samples``; with turns that of a turn, by episodes that are played to their end. Put it where ``GRPO`` would stand,
    for ``cuts="phrase"`` below an operator that marks planning; phrases that touch are one.

    Only continuations that leave all completions are decoded; see :class:`rlcredit.oracle.Oracle`. A completion
    without verdict gets nothing.

    With ``train`` the continuations are trained on, too: every cut is a fork of ``samples`` continuations, and all
    credit is that of :func:`rlcredit.formulas.branches.branch_credit`. :math:`V_{start}` is then still the mean of the
    continuations, and :math:`V_{end}` also counts the rest of the completion. The weight of segment k is
    ``(1 + samples) ** -k`` with ``on_policy``, so that late segments teach little, and one with ``equal``, which turns
    the gradient; see ``Branches``. Continuations that prefixes share are no independent draws from each: these are
    decoded anew for every cut, at a higher cost, and never for tokens. Whether a token opens a sentence or a phrase
    shows once it, or the phrase, is drawn: cuts look ahead so far. Turns do not.

    Args:
        samples: Continuations per prefix.
        cuts: Segments that get credit: each ``token``, each ``sentence``, each planning ``phrase`` and what lies
            between two, or, in episodes always, each ``turn``.
        baseline: ``value``, or for tokens ``optimal``, which leaves the gradient less noise; see
            :func:`callbacks.dense.monte_carlo_credit.optimal_baseline_credit`.
        train: Weight of a branch if the continuations are trained on, ``on_policy`` or ``equal``; ``none`` if they
            measure only.

    """

    def __init__(
        self, samples: int = 8, cuts: Cuts = "token", baseline: Baseline = "value", train: Training = "none"
    ) -> None:
        super().__init__()
        if samples < 1:
            raise ValueError(f"MonteCarloCredit expects samples >= 1, got {samples}.")
        self.samples = samples
        self.cuts: Cuts = require_choice("MonteCarloCredit", "cuts", cuts, get_args(Cuts))
        self.baseline: Baseline = require_choice("MonteCarloCredit", "baseline", baseline, get_args(Baseline))
        if baseline == "optimal" and cuts != "token":
            raise ValueError(f"MonteCarloCredit has the optimal baseline for tokens only, got cuts {cuts!r}.")
        self.train: Training = require_choice("MonteCarloCredit", "train", train, get_args(Training))
        if train != "none" and cuts == "token":
            raise ValueError(f"MonteCarloCredit does not train on tokens, got cuts {cuts!r}. Use Branches.")
        self.writes = self.writes | ({"continuations"} if train != "none" else set())
        self.reads = self.reads | ({"plan_mask"} if cuts == "phrase" else set())
        self.reads = self.reads | ({"old_logprobs"} if baseline == "optimal" else set())

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log how many tokens were decoded for it, the value of the prompts, and where credit lies."""
        mask, turn, decoded_count = rollout.mask, rollout.turn, rollout.oracle.decoded
        starts = segment_starts(rollout.tokens, rollout.plan_mask if self.cuts == "phrase" else mask, turn, self.cuts)
        if self.train != "none":
            return credit_branches(rollout, places_in_order(starts & rollout.judged_mask), self.samples, self.train)
        values = rollout.oracle.outcomes(rollout, range(len(mask)), starts.cpu(), self.samples).mean(-1).to(mask.device)
        credit = segment_differences(values, starts, mask).where(rollout.judged[:, None], 0)
        if self.baseline == "optimal":
            credit = optimal_baseline_credit(credit, rollout.old_logprobs)
        rollout.advantages = credit.float()
        return {
            "decoded_tokens": float(rollout.oracle.decoded - decoded_count),
            "value": values[:, 0].mean(),
            "credited_fraction": masked_mean((credit != 0).float(), mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """A segment can turn a lost answer into a sure one; the optimal baseline multiplies by unbounded odds."""
        return 1.0 if self.baseline == "value" else math.inf
