"""Within turns: a token operator says where in a turn credit lies, and leaves how much the turn has."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.operator_wrapper import OperatorWrapper
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import ROUNDING_ERROR
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.turns import spread_turns, sum_turns


def within_turn_credit(credit: Tensor, old_credit: Tensor, turn: Tensor) -> Tensor:
    r"""Scale credit such that the tokens of every turn have the sum, and so the mean, that they had before.

    .. math:: A_t \leftarrow A'_t\, \frac{\sum_{s \in k(t)} A_s}{\sum_{s \in k(t)} A'_s}

    A turn whose two sums are not of one sign, as after a mask that erases it, stays as it was. Shape ``(B, T)``.

    Args:
        credit: Credit A' that an operator has made of the old, shape ``(B, T)``.
        old_credit: Credit A before that, shape ``(B, T)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> import torch
        >>> credit, old_credit = torch.tensor([[3.0, 1.0, 0.0]]), torch.tensor([[1.0, 1.0, -1.0]])
        >>> within_turn_credit(credit, old_credit, torch.tensor([[0, 0, 1]])).tolist()
        [[1.5, 0.5, -1.0]]

    """
    sums, old_sums = (sum_turns(values.double(), turn, turn.shape[1]) for values in (credit, old_credit))
    scales = old_sums / sums
    scales = scales.where((scales - 1).abs() > ROUNDING_ERROR, 1).where(sums * old_sums > 0, 0)
    token_scales = spread_turns(scales, turn).to(credit.dtype)
    return (credit * token_scales).where(token_scales > 0, old_credit)


class WithinTurns(OperatorWrapper, reads="advantages turn", writes="advantages"):
    """Let an operator move credit inside each turn, and none between turns, by :func:`within_turn_credit`.

    ``[TurnReturns, WithinTurns(operator=GTPO())]`` reads: how much a turn has, and where in it. It reads what the
    operator reads, and the turns. On episodes of one turn it is the operator, scaled to the credit of the episode.

    Args:
        operator: Token operator, in call form as in ``WithinTurns(operator=GTPO())``; one that reads advantages and
            writes nothing else.

    """

    def __init__(self, operator: CreditOperator) -> None:
        super().__init__(operator)
        if operator.writes != {"advantages"} or "advantages" not in operator.reads:
            name = type(operator).__name__
            raise ValueError(f"WithinTurns expects an operator that edits advantages alone, got {name}. List it alone.")
        self.reads = operator.reads | {"turn"}

    def assign(self, rollout: Rollout) -> Metrics:
        """Run the operator and scale; log its metrics, and the share of tokens whose credit has changed."""
        old_credit = rollout.advantages
        metrics = self.run_operator(rollout)
        rollout.advantages = within_turn_credit(rollout.advantages, old_credit, rollout.turn)
        changes = rollout.advantages != old_credit
        return {**metrics, "changed_fraction": masked_mean(changes.float(), rollout.mask)}
