"""Forced answer: a prefix is worth how likely the policy states the reference answer if it has to answer now."""

from typing import get_args

from torch import Tensor

from rlcredit.credit.critic import describe_values
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import last_token_mask, masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.segments import Cuts, segment_starts
from rlcredit.formulas.value_estimates import carried_values


class ForcedAnswer(
    CreditOperator,
    reads="completion_ids judged lookahead prompt_ids rewards tokens turn",
    writes="critic_weight values",
    costly=True,
    rewards="binary",
):
    r"""Set values to the probability of the reference answer behind each prefix.

    .. math:: V_t = \exp\Bigl(\frac{1}{K} \sum_{k=1}^{K} \log \pi(y^*_k \mid s_t, \text{closing}, y^*_{<k})\Bigr)

    the geometric mean over the K tokens of the answer :math:`y^*`, as in IGPO (Wang et al., 2025, arXiv:2510.14967).
    One forward pass per rollout, nothing is decoded and nothing learned. It says what the policy could answer *now*,
    which in a long derivation may stay low until the last step: put ``SkillWeight`` or ``CalibrationWeight`` below it.

    Args:
        closing: Text that is put behind a prefix and leads to the answer.
        cuts: Where values are taken: before each ``token``, each ``sentence``, or each planning ``phrase`` and what
            lies between two, or each ``turn``, as IGPO and TRACE (arXiv:2607.13988) do; in between the value stays.

    """

    def __init__(self, closing: str = "\n\nThe answer is ", cuts: Cuts = "sentence") -> None:
        super().__init__()
        self.closing = closing
        self.cuts: Cuts = require_choice("ForcedAnswer", "cuts", cuts, get_args(Cuts))
        self.reads = self.reads | {{"phrase": "plan_mask", "turn": "turn"}.get(cuts, "tokens")}

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace values; log how good they are, the prefixes read, and the value of the prompts and of the ends."""
        mask = rollout.mask
        plan_mask = rollout.plan_mask if self.cuts == "phrase" else mask  # used by phrases only
        starts = segment_starts(rollout.tokens, plan_mask, rollout.turn, self.cuts)
        read: Tensor = rollout.lookahead.read_answers(rollout, starts, self.closing).exp()
        rollout.values, rollout.critic_weight = carried_values(read, starts, mask), 1.0
        return {
            **describe_values(rollout),
            "prefixes": starts.sum() / len(mask),
            "value_start": rollout.values[:, 0].mean(),
            "value_end": masked_mean(rollout.values, last_token_mask(mask)),
        }
