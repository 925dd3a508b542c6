"""A run that ends after so many tokens instead of so many steps."""

from bisect import bisect_right
from dataclasses import asdict
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.budget_kinds import BUDGET_KINDS, list_budget_marks, sum_budget_counts
from rlcredit.base.lightning_private import set_evaluation_interval
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.training.module import PolicyModule

_NO_EVALUATION = 10**12
"""Updates from one evaluation to the next where tokens decide when it is due."""


class TokenBudget(Callback):
    """End the run with the first rollout at or over a number of tokens, evaluated and saved like the last step.

    The numbers are ``tokens/decoded``, ``tokens/backward``, or ``tokens/decoded`` plus ``tokens/prefill``: exact
    counts over all processes; floating-point operations could only be estimated. Set ``trainer.max_steps`` to -1, or to
    a limit that still holds. A scheduler in ``model.scheduler`` is refused: it counts steps, whose number a budget
    leaves open. ``LinearRate`` counts tokens.

    Args:
        decoded_tokens: Tokens decoded for training, at least 1; one of the three is given.
        backward_tokens: Tokens of updates, at least 1.
        evaluations: Number of evaluations after the first step, at equal shares of the budget, or the tokens after
            which they are due, in place of those by ``trainer.val_check_interval``; an evaluation follows the first
            rollout at or over its mark.
        rollout_tokens: Tokens decoded and read for training, at least 1: what environments say is read, and so are
            distinct prompts.

    """

    def __init__(
        self,
        decoded_tokens: int | None = None,
        backward_tokens: int | None = None,
        evaluations: int | list[int] | None = None,
        rollout_tokens: int | None = None,
    ) -> None:
        numbers = dict(zip(BUDGET_KINDS, (decoded_tokens, backward_tokens, rollout_tokens), strict=True))
        budgets = {kind: number for kind, number in numbers.items() if number is not None}
        if len(budgets) != 1 or min(budgets.values()) < 1:
            raise ValueError(
                f"TokenBudget expects {', '.join(BUDGET_KINDS)}: one of them and at least 1, got {budgets or 'none'}."
            )
        ((self.kind, self.budget),) = budgets.items()
        if isinstance(evaluations, int):
            if evaluations < 1:
                raise ValueError(f"TokenBudget expects evaluations >= 1, got {evaluations}.")
            evaluations = list_budget_marks(self.budget, evaluations)
        elif evaluations is not None and evaluations != sorted({*evaluations, self.budget} - {0}):
            raise ValueError(
                f"TokenBudget expects evaluations that ascend to its {self.budget} tokens, got {evaluations}."
            )
        self.marks = evaluations
        self.counted = 0
        self.before = 0

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a schedule of the learning rate."""
        if stage == "fit":
            refuse_step_schedule(cast("PolicyModule", pl_module))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take no step if the budget is spent already, as it is where a finished run is continued."""
        counts = cast("PolicyModule", pl_module).state.token_counts
        if counts is None:
            raise ValueError(
                "TokenBudget: the checkpoint does not say how many tokens its run has used. Start the run anew."
            )
        self.counted = self._read_count(counts)
        if self.counted >= self.budget:
            advice = f"To go on, raise {self.kind} of TokenBudget."
            rank_zero_only(print)(f"the run is finished: all {self.budget:,} tokens are used. {advice}", flush=True)
        self._steer(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Ask for an evaluation, or for the end, after the last update of a rollout."""
        module = cast("PolicyModule", pl_module)
        counts = module.state.token_counts
        assert counts is not None
        if batch.update + 1 == module.updates_per_rollout:
            self.before, self.counted = self.counted, self._read_count(counts)
        else:
            self.before = self.counted
        self._steer(trainer)

    def state_dict(self) -> dict[str, int]:
        """Return the count before the last rollout, which says whether the step after it was evaluated."""
        return {"before": self.before}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Restore the count before the last rollout."""
        self.before = state_dict["before"]

    def _read_count(self, counts: TokenCounts) -> int:
        return int(sum_budget_counts(self.kind, asdict(counts)))

    def _steer(self, trainer: Trainer) -> None:
        """Set what Lightning reads after a step: whether to evaluate, and whether to stop."""
        if self.marks:
            old_count, new_count = (bisect_right(self.marks, tokens) for tokens in (self.before, self.counted))
            set_evaluation_interval(trainer, 1 if new_count > old_count else _NO_EVALUATION)
        if self.counted >= self.budget:
            trainer.should_stop = True


def refuse_step_schedule(module: PolicyModule) -> None:
    """Refuse a schedule of the learning rate, which counts steps.

    Raises:
        ValueError: there is one; with the repair.

    """
    if module.scheduler is not None:
        raise ValueError(
            "model.scheduler counts steps, and a budget of tokens leaves their number open. Set model.scheduler: null "
            "and add LinearRate to trainer.callbacks, or declare a number of steps instead of a budget."
        )
