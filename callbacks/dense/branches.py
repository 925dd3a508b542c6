"""Branches: completions fork where the policy is undecided, and what is decoded there is trained on."""

from typing import Literal, get_args

from torch import Tensor

from rlcredit.credit.branching import BranchWeights, credit_branches
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number
from rlcredit.formulas.branches import fork_places
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.segments import Cuts, segment_starts

ForkRule = Literal["threshold", "random", "entropy_rank"]


class Branches(CreditOperator, reads="correct judged oracle turn", writes="advantages continuations", costly=True):
    r"""Continue every completion from some of its prefixes, and train on the continuations too.

    .. math:: w_k \sum_{t \text{ behind } k \text{ forks}} \Bigl(Q_k - \frac{1}{W} \sum_w r_{k,w}\Bigr)
        \nabla \log \pi(o_t), \qquad w_k = (1 + W)^{-k}

    and likewise for continuations, against the mean of their siblings; before the first fork the baseline is the mean
    value of the other completions of the prompt. See :func:`rlcredit.formulas.branches.branch_credit`. The tokens
    before a fork profit from all that was decoded behind it. A completion without a fork has flat credit; without any,
    or with ``width=0``, this is ``RLOO``. Continuations count as tokens decoded for training: take fewer completions.
    Put it where ``GRPO`` would stand; operators below it change the credit of completions, not of continuations.

    Rules. ``threshold`` forks at the first tokens that are drawn with more entropy than ``level``, ``random`` at each
    token with the chance ``rate``: neither looks ahead, and with ``train="on_policy"`` the expected gradient is that of
    the policy. ``entropy_rank`` forks at the tokens of highest entropy of the whole completion, as in TreeRL (2025,
    arXiv:2506.11902) by surprisal; the choice depends on later tokens, and so the gradient is biased.

    ``train="equal"`` gives every edge of the tree full weight, as do the trees of SPO (2025, arXiv:2505.23564), SRPO
    (2026, arXiv:2605.25507) and CBPO (2026, arXiv:2608.24300). It weighs the states behind forks too much, and turns
    the gradient.

    Args:
        forks: Most forks of a completion, none of them before its first token.
        width: Continuations per fork, W.
        rule: Rule by which forks are chosen: ``threshold``, ``random`` or ``entropy_rank``.
        train: Weight of a branch: ``on_policy`` for its share of the prompt's mass, or ``equal``.
        level: Entropy in nats above which ``threshold`` forks.
        rate: Chance that ``random`` forks at a token.
        spacing: Fewest tokens between two forks.
        cuts: Places that may be forks: any ``token``, or the first of a ``turn``, as episodes need it.

    """

    def __init__(
        self,
        forks: int = 1,
        width: int = 2,
        rule: ForkRule = "threshold",
        train: BranchWeights = "on_policy",
        level: float = 0.3,
        rate: float = 0.1,
        spacing: int = 4,
        cuts: Literal["token", "turn"] = "token",
    ) -> None:
        super().__init__()
        if forks < 0 or width < 0 or level < 0 or spacing < 1 or not 0 <= rate <= 1:
            raise ValueError(
                "Branches expects forks, width and level >= 0, spacing >= 1 and rate from 0 to 1, got "
                f"{forks}, {width}, {level:g}, {spacing} and {rate:g}."
            )
        self.rule: ForkRule = require_choice("Branches", "rule", rule, get_args(ForkRule))
        self.train: BranchWeights = require_choice("Branches", "train", train, get_args(BranchWeights))
        self.forks, self.width, self.level, self.rate, self.spacing = forks, width, level, rate, spacing
        self.cuts: Cuts = require_choice("Branches", "cuts", cuts, ("token", "turn"))
        self.reads = self.reads | {"step" if rule == "random" else "entropy"}

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log tokens decoded, the value of the prompts, forks per completion, and where credit lies."""
        return credit_branches(rollout, self.choose_forks(rollout), self.width, self.train)

    def choose_forks(self, rollout: Rollout) -> Tensor:
        """Return the places of forks, ascending, then -1, shape ``(B, forks)``."""
        mask = rollout.judged_mask
        number = mask.cumsum(-1)
        if self.rule == "random":
            candidates = self.draw_token_uniforms(rollout, stream_number("Branches")) < self.rate
        else:
            candidates = rollout.entropy > (self.level if self.rule == "threshold" else 0)
        candidates = candidates & segment_starts([], mask, rollout.turn, self.cuts) & mask & (number > 1)
        priority = rollout.entropy if self.rule == "entropy_rank" else -number
        return fork_places(priority, candidates, number, self.forks if self.width else 0, self.spacing)

    def bound(self, limit: float, group_size: int) -> float:
        """Values lie in [0, 1], and so do their baselines."""
        return 1.0 if group_size > 1 or (self.forks and self.width) else 0.0

    def count_continuations(self) -> tuple[int, int]:
        """Every fork has as many."""
        return self.forks, self.width
