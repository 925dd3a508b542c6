"""Monte-Carlo credit: what each segment of a completion did to the chance of a right answer, by asking the policy."""

import math
from typing import Literal, get_args

from callbacks.base import CreditOperator, Metrics
from rlcredit.functional.choices import one_of
from rlcredit.functional.masked import masked_mean
from rlcredit.functional.optimal_baseline import optimal_baseline_credit
from rlcredit.functional.segments import Cuts, segment_differences, segment_starts
from rlcredit.rollout import Rollout

Baseline = Literal["value", "optimal"]


class MonteCarloCredit(CreditOperator, reads="correct judged oracle tokens", writes="advantages", costly=True):
    r"""Give every token the difference that its segment makes, :math:`A_t = V_{end} - V_{start}`.

    The value of a prefix is the share of right ones among its continuations by the policy itself; at the end it is the
    verdict. With sentences this is the advantage of VinePPO (Kazemnejad et al., 2024, arXiv:2410.01679), without its
    loss. With tokens it estimates the true advantage without bias, with noise that falls as one over the root of
    ``samples``. Put it where ``GRPO`` would stand, for ``cuts="phrase"`` below an operator that marks planning; phrases
    that touch are one.

    Only continuations that leave all completions are decoded; see :class:`rlcredit.oracle.Oracle`. A completion
    without verdict gets nothing.

    Args:
        samples: continuations per prefix.
        cuts: what a segment is: a ``token``, a ``sentence``, or a planning ``phrase`` and what lies between two.
        baseline: ``value``, or for tokens ``optimal``, which leaves the gradient less noise; see
            :func:`rlcredit.functional.optimal_baseline.optimal_baseline_credit`.

    """

    def __init__(self, samples: int = 8, cuts: Cuts = "token", baseline: Baseline = "value") -> None:
        super().__init__()
        if samples < 1:
            raise ValueError(f"MonteCarloCredit expects samples >= 1, got {samples}.")
        self.samples = samples
        self.cuts: Cuts = one_of("MonteCarloCredit", "cuts", cuts, get_args(Cuts))
        self.baseline: Baseline = one_of("MonteCarloCredit", "baseline", baseline, get_args(Baseline))
        if baseline == "optimal" and cuts != "token":
            raise ValueError(f"MonteCarloCredit has the optimal baseline for tokens only, got cuts {cuts!r}.")
        self.reads = self.reads | ({"plan_mask"} if cuts == "phrase" else set())
        self.reads = self.reads | ({"old_logprobs"} if baseline == "optimal" else set())

    def assign(self, rollout: Rollout) -> Metrics:
        """Ask; log how many tokens were decoded for it, the value of the prompts, and where credit lies."""
        mask, before = rollout.mask, rollout.oracle.decoded
        starts = segment_starts(rollout.tokens, rollout.plan_mask, mask, self.cuts)
        right = rollout.oracle.outcomes(rollout, range(len(mask)), starts.cpu(), self.samples)
        values = right.mean(-1).to(mask.device)
        credit = segment_differences(values, starts, mask).where(rollout.judged[:, None], 0)
        if self.baseline == "optimal":
            credit = optimal_baseline_credit(credit, rollout.old_logprobs)
        rollout.advantages = credit.float()
        return {
            "decoded_tokens": float(rollout.oracle.decoded - before),
            "value": values[:, 0].mean(),
            "credited_fraction": masked_mean((credit != 0).float(), mask),
        }

    def bound(self, above: float, group_size: int) -> float:
        """A segment can turn a lost answer into a sure one; beside a nearly sure token, odds are large."""
        return 1.0 if self.baseline == "value" else math.inf
