"""Planning masks that are worse than the phrases, and stacks of SEPA with each of them."""

from collections.abc import Callable

import torch
from torch import Tensor

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.sepa import SEPA
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number, token_uniforms
from rlcredit.formulas.spans import plan_coverage
from rlcredit.formulas.uncertainty import surprisal


def mark_missed_stretches(plan_mask: Tensor, uniforms: Tensor, share: float) -> Tensor:
    """Unmark a share of the stretches of planning tokens, each stretch whole.

    Args:
        plan_mask: True on planning tokens, shape ``(B, T)``.
        uniforms: Uniform number of each token; that of its first token decides over a stretch, same shape.
        share: Share of the stretches that is missed.

    Example:
        >>> plan_mask, uniforms = torch.tensor([[True, True, False, True]]), torch.tensor([[0.1, 0.9, 0.1, 0.7]])
        >>> mark_missed_stretches(plan_mask, uniforms, 0.5)
        tensor([[False, False, False,  True]])

    """
    before = torch.nn.functional.pad(plan_mask, (1, -1))
    places = torch.arange(plan_mask.shape[1]).expand(plan_mask.shape)
    first = places.where(plan_mask & ~before, 0).cummax(-1).values
    return plan_mask & (uniforms.gather(-1, first) >= share)


def add_wrong_marks(plan_mask: Tensor, mask: Tensor, scores: Tensor) -> Tensor:
    """Mark as many execution tokens of each completion as planning tokens, those with the highest scores.

    Args:
        plan_mask: True on planning tokens, shape ``(B, T)``.
        mask: True on sampled tokens, same shape.
        scores: Score of each token, same shape.

    Example:
        >>> plan_mask, mask = torch.tensor([[True, False, False]]), torch.ones(1, 3, dtype=torch.bool)
        >>> add_wrong_marks(plan_mask, mask, torch.tensor([[9.0, 1.0, 2.0]]))
        tensor([[ True, False,  True]])

    """
    execution = mask & ~plan_mask
    rank = scores.where(execution, -torch.inf).argsort(dim=-1, descending=True).argsort(dim=-1)
    return plan_mask | (execution & (rank < plan_mask.sum(-1, keepdim=True)))


class MissedPhrases(CreditOperator, reads="plan_mask step", writes="plan_mask"):
    """Unmark half of the stretches of planning tokens, by lot: a recall of one half."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Unmark; log the coverage left."""
        stream = stream_number("MissedPhrases")
        uniforms = token_uniforms(self.run_seed, rollout.step, stream, rollout.mask.shape, rollout.group_size)
        rollout.plan_mask = mark_missed_stretches(rollout.plan_mask, uniforms, 0.5)
        return plan_coverage(rollout.plan_mask, rollout.mask)


class RandomMarks(CreditOperator, reads="plan_mask step", writes="plan_mask"):
    """Mark as many execution tokens as planning tokens, by lot: a precision of one half."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Mark; log the coverage."""
        stream = stream_number("RandomMarks")
        uniforms = token_uniforms(self.run_seed, rollout.step, stream, rollout.mask.shape, rollout.group_size)
        rollout.plan_mask = add_wrong_marks(rollout.plan_mask, rollout.mask, uniforms)
        return plan_coverage(rollout.plan_mask, rollout.mask)


class SurprisingMarks(CreditOperator, reads="plan_mask old_logprobs", writes="plan_mask"):
    """Mark as many execution tokens as planning tokens, the most surprising: a precision of one half at its worst."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Mark; log the coverage."""
        rollout.plan_mask = add_wrong_marks(rollout.plan_mask, rollout.mask, surprisal(rollout.old_logprobs))
        return plan_coverage(rollout.plan_mask, rollout.mask)


def make_sepa_stack(*planners: CreditOperator) -> list[CreditOperator]:
    """Return SEPA at lambda 1 above GTPO, behind the phrases and what is done to their mask."""
    return [GRPO(), StrategicGrams(), *planners, ConstantLambda(1.0), SEPA(), GTPO()]


STACKS: dict[str, Callable[[], list[CreditOperator]]] = {
    "GRPO": lambda: [GRPO()],
    "GTPO": lambda: [GRPO(), GTPO()],
    "SEPA": make_sepa_stack,
    "half missed": lambda: make_sepa_stack(MissedPhrases()),
    "half wrong": lambda: make_sepa_stack(RandomMarks()),
    "half wrong, surprising": lambda: make_sepa_stack(SurprisingMarks()),
}
"""Stacks by name: flat credit, GTPO without pooling, and SEPA with the true mask and with three worse ones."""
