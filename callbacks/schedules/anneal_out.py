"""Annealing out: another operator acts in full, then less and less, then not at all."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.operator_wrapper import OperatorWrapper
from rlcredit.credit.rollout import MEANINGFUL_FIELDS, NO_NUMBERS, Rollout
from rlcredit.formulas.ramps import linear_ramp


class AnnealOut(OperatorWrapper, reads="advantages step", writes="advantages"):
    r"""Let an operator act in full up to a step, mix what it writes with what stood before, and then leave it out.

    .. math:: x' = x + (1 - \lambda(t))\, (f(x) - x)

    with :func:`rlcredit.formulas.ramps.linear_ramp` :math:`\lambda`. It reads and writes what the operator does, and
    the step. From ``delay + steps`` on, the operator does not run and the ledger stays bit for bit as it was.
    ``sepa_lambda`` and ``process`` mean nothing before they are written, and are mixed with zero:
    ``AnnealOut(operator=ConstantLambda(), steps=50)`` is the schedule of ``LinearLambda`` reversed. What ``rlcredit
    card`` says of one batch holds for the last step of its runs, at which little or nothing may be left.

    Args:
        operator: Operator that is annealed out, in call form as in ``AnnealOut(operator=RSIMask())``; no probe, no
            critic, and none that marks planning tokens or credits tokens that were not drawn.
        delay: Last step at which the operator acts in full.
        steps: Length of the fall in steps.

    """

    def __init__(self, operator: CreditOperator, delay: int = 0, steps: int = 50) -> None:
        super().__init__(operator)
        if delay < 0 or steps < 1:
            raise ValueError(f"AnnealOut expects delay >= 0 and steps >= 1, got {delay} and {steps}.")
        if not operator.writes or operator.writes & NO_NUMBERS:
            fields = ", ".join(sorted(operator.writes)) or "nothing"
            raise ValueError(
                f"AnnealOut cannot mix what {type(operator).__name__} writes, {fields}. List it by itself, and anneal "
                "out an operator that writes numbers, such as SEPA or HICRA."
            )
        self.delay, self.steps, self.writes = delay, steps, operator.writes
        self.reads = operator.reads | (operator.writes & MEANINGFUL_FIELDS) | {"step"}

    def assign(self, rollout: Rollout) -> Metrics:
        """Run the operator and mix; log its metrics, and the strength, zero once it is left out."""
        strength = 1 - linear_ramp(rollout.step, self.delay, self.steps)
        if strength == 0:
            return {"strength": strength}
        old_fields = {name: getattr(rollout, name) for name in self.writes & self.reads}
        metrics = self.run_operator(rollout)
        for name in self.writes if strength < 1 else ():
            old = old_fields.get(name, 0.0)
            setattr(rollout, name, old + strength * (getattr(rollout, name) - old))
        return {**metrics, "strength": strength}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing exceeds the larger of what enters and what the operator leaves."""
        return max(limit, self.operator.bound(limit, group_size))

    def notice(self, limit: float, group_size: int) -> str | None:
        """Return why the operator cannot have an effect, if so."""
        return self.operator.notice(limit, group_size)
