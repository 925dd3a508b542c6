"""Properties of a stack: those that it declares, and those checked by modifying a batch."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.cards.card_batch import CreditedBatch
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import NEUTRAL_VALUES, PER_TOKEN, Rollout
from rlcredit.credit.stack_checks import bound_advantages
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.formulas.turns import place_last

ADDED_COLUMNS = 3
"""Columns of padding that are added."""

CREDIT_ROUNDING = 1e-5
"""Differences of credit that are none, as a share of the largest credit."""

Stack = Sequence[CreditOperator]

Found = tuple[bool | None, str]
"""Whether a property holds, None where neither applies, and the property in words."""


def stack_advantages(stack: Stack, rollout: Rollout, rewards: Tensor | None = None) -> Tensor:
    """Return the advantages that copies of some operators assign, zero outside the mask, shape ``(B, T)``.

    Args:
        stack: Operators; they are copied and left as they are.
        rollout: Rollout; its ledger is copied and opened neutral.
        rewards: Rewards that replace the verdicts, shape ``(B,)``; the verdicts if None.

    """
    return _assign_advantages(copy.deepcopy(list(stack)), rollout, rewards)


def _assign_advantages(stack: Stack, rollout: Rollout, rewards: Tensor | None = None) -> Tensor:
    """Return the advantages that the operators themselves assign."""
    fresh = rollout.copy_with_neutral_ledger()
    if rewards is not None:
        fresh.rewards = rewards
        if rollout.turn_rewards is not None:
            fresh.turn_rewards = _scale_turn_rewards(rollout, rewards)
    for operator in stack:
        operator.assign_checked(fresh)
    return fresh.advantages.where(fresh.mask, 0)


def _scale_turn_rewards(rollout: Rollout, rewards: Tensor) -> Tensor:
    """Return rewards of turns with other sums, in the same proportions; at the last turn where there was none."""
    sums = rollout.turn_rewards.sum(-1)
    factors = rewards / sums.where(sums != 0, 1)
    last_rewards = place_last(rewards, rollout.turn)
    last_rewards = pad(last_rewards, (0, rollout.turn_rewards.shape[1] - last_rewards.shape[1]))
    return (rollout.turn_rewards * factors[:, None]).where((sums != 0)[:, None], last_rewards)


def is_same_credit(credit: Tensor, reference: Tensor) -> bool:
    """Whether two ledgers differ by no more than rounding."""
    return bool(
        (credit - reference).abs().max() <= CREDIT_ROUNDING * torch.maximum(credit.abs(), reference.abs()).max()
    )


def check_repeatability(stack: Stack, rollout: Rollout) -> Found:
    """Check whether the same batch always gets the same credit."""
    if is_same_credit(stack_advantages(stack, rollout), stack_advantages(stack, rollout)):
        return True, "the same batch gets the same credit"
    return False, "the same batch gets different credit each time"


def _check_batch_memory(stack: Stack, rollout: Rollout) -> Found:
    """Check what is remembered from batch to batch, and whether a checkpoint would hold all of it.

    Between two assignments, the operators see the batch with the opposite verdicts; then everything declared as
    ``state`` is restored.
    """
    copies = copy.deepcopy(list(stack))
    credit = _assign_advantages(copies, rollout)
    _assign_advantages(copies, rollout, 1 - rollout.correct)
    for operator, original in zip(copies, stack, strict=True):
        operator.load_state_dict(copy.deepcopy(original.state_dict()))
    if not is_same_credit(credit, _assign_advantages(copies, rollout)):
        return False, "credit depends on earlier batches, and no `state` declares it: a continued run would differ"
    if memories := [
        f"{type(member).__name__} keeps {', '.join(sorted(member.state))}" for member in stack if member.state
    ]:
        return None, f"credit may depend on earlier batches: {'; '.join(memories)}"
    return True, "credit does not depend on earlier batches"


def _check_order_invariance(stack: Stack, rollout: Rollout) -> Found:
    size = rollout.group_size
    groups = torch.arange(len(rollout.mask)).view(-1, size)
    order = groups.flip(0).roll(1, dims=1).flatten()
    if is_same_credit(stack_advantages(stack, rollout.select_rows(order)), stack_advantages(stack, rollout)[order]):
        return True, "the order of prompts and of completions does not matter"
    return False, "credit depends on the order of prompts or completions, as it does where noise is drawn by position"


def _check_padding_invariance(stack: Stack, rollout: Rollout) -> Found:
    wide = copy.copy(rollout)
    for name in (*PER_TOKEN, "mask", *NEUTRAL_VALUES):
        value = getattr(rollout, name)
        if isinstance(value, Tensor) and value.shape == rollout.mask.shape:
            setattr(wide, name, pad(value, (0, ADDED_COLUMNS), value=-1 if name == "turn" else 0))
    if is_same_credit(stack_advantages(stack, wide)[:, :-ADDED_COLUMNS], stack_advantages(stack, rollout)):
        return True, "padding does not matter"
    return False, "credit depends on how far completions are padded"


def _check_prompt_independence(stack: Stack, rollout: Rollout) -> Found:
    """Check whether each prompt gets the credit that it would get alone."""
    parts = torch.arange(len(rollout.mask)).split(rollout.group_size)
    separate_credit = torch.cat([stack_advantages(stack, rollout.select_rows(rows)) for rows in parts])
    if is_same_credit(separate_credit, stack_advantages(stack, rollout)):
        return True, "every prompt gets the credit that it would get alone"
    return False, "a prompt's credit depends on the other prompts of the batch"


def _check_unjudged_completions(stack: Stack, rollout: Rollout) -> Found:
    """Check whether completions keep their credit when the last one of each group had no verdict."""
    size = rollout.group_size
    if size < 3:
        return None, "groups of two leave one completion when the other has no verdict"
    is_last = torch.arange(len(rollout.mask), device=rollout.mask.device) % size == size - 1
    whole_rollout, judged_rollout = copy.copy(rollout), rollout.select_rows((~is_last).nonzero().squeeze(-1))
    whole_rollout.judged = rollout.judged & ~is_last
    whole_rollout.correct = group_imputed_values(rollout.correct, whole_rollout.judged, size)
    judged_rollout.group_size, judged_rollout.sources = size - 1, rollout.sources
    judged_rollout.correct = whole_rollout.correct[~is_last]
    if is_same_credit(stack_advantages(stack, whole_rollout)[~is_last], stack_advantages(stack, judged_rollout)):
        return True, "a completion without a verdict changes no other completion's credit"
    return (
        False,
        "credit depends on completions without a verdict, or on noise drawn by position: see `Rollout.judged_mask`",
    )


def _describe_reward_scaling(stack: Stack, rollout: Rollout) -> Found:
    """Describe the change of credit when all rewards are doubled, and when one is added to them."""
    plain = stack_advantages(stack, rollout, rollout.correct)
    if not plain.any():
        return None, "no credit is given, whatever the rewards"
    double_credit, shifted_credit = (
        stack_advantages(stack, rollout, rewards) for rewards in (2 * rollout.correct, rollout.correct + 1)
    )
    size = (
        "doubles"
        if is_same_credit(double_credit, 2 * plain)
        else "stays"
        if is_same_credit(double_credit, plain)
        else "changes in another way"
    )
    shift = "stays" if is_same_credit(shifted_credit, plain) else "changes"
    return None, f"where all rewards double, credit {size}; where all are higher by one, it {shift}"


STACK_CHECKS: dict[str, Callable[[Stack, Rollout], Found]] = {
    "memory": _check_batch_memory,
    "order": _check_order_invariance,
    "padding": _check_padding_invariance,
    "splitting": _check_prompt_independence,
    "verdicts": _check_unjudged_completions,
    "rewards": _describe_reward_scaling,
}
"""Checks of a stack that gives the same batch the same credit: whether each holds, and that in words."""


NEUTRAL_CANDIDATES = (0.0, 1.0, math.inf)
"""Values that may make an argument neutral."""


def find_neutral_arguments(stack: Stack, rollout: Rollout) -> Found:
    """Find arguments with which the last operator does nothing."""
    place = max((number for number, operator in enumerate(stack) if "advantages" in operator.writes), default=None)
    if place is None:
        return None, "no operator writes advantages"
    operator, base_credit = stack[place], stack_advantages(stack[:place], rollout)
    label, arguments_text = type(operator).__name__, list[str]()
    if is_same_credit(stack_advantages(stack[: place + 1], rollout), base_credit):
        return None, f"{label} does nothing here as it is: what stands above it gives the same credit"
    numbers = {
        name: value
        for name, value in operator.arguments.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    if operator.neutral and _is_idle_with(stack, place, operator.neutral, rollout, base_credit):
        arguments_text.append(_format_arguments(operator.neutral))
    for name, value in numbers.items():
        if name in operator.neutral:
            continue
        for candidate in (kind for kind in NEUTRAL_CANDIDATES if math.isfinite(kind) or isinstance(value, float)):
            if _is_idle_with(stack, place, {name: type(value)(candidate)}, rollout, base_credit):
                arguments_text.append(f"{name} = {candidate:g}")
    if not (numbers or operator.neutral):
        return None, f"{label} has no argument that is a number"
    if not arguments_text:
        return False, f"{label} has none among 0, 1 and infinity"
    return True, f"{label} does nothing with {', or '.join(arguments_text)}"


def _format_arguments(arguments: Mapping[str, Any]) -> str:
    """Return arguments as a list of equations."""
    return " and ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}" for name, value in arguments.items()
    )


def _is_idle_with(stack: Stack, place: int, argument: Mapping[str, Any], rollout: Rollout, base_credit: Tensor) -> bool:
    """Whether an operator with another argument leaves the ledger unchanged."""
    operator = stack[place]
    names = inspect.signature(type(operator)).parameters
    try:
        variant = type(operator)(**{**{n: v for n, v in operator.arguments.items() if n in names}, **argument})
        variant.label, variant.run_seed = operator.label, operator.run_seed
        return is_same_credit(stack_advantages([*stack[:place], variant], rollout), base_credit)
    except Exception:  # noqa: BLE001  (a value that it refuses, or fails with, is not neutral)
        return False


CHECKED_PROMPTS = 4
"""Prompts on which a stack is checked that has more decoded; others are checked on all."""


@dataclass(frozen=True)
class StackProperty:
    """A property that a stack has, or lacks.

    Args:
        name: Name of the property.
        holds: Whether it holds; None where it could not be checked, or is no matter of yes or no.
        sentence: Property in plain words.

    """

    name: str
    holds: bool | None
    sentence: str


FAULT_CHECKS = frozenset(["memory", "padding"])
"""Checks that every sound stack passes; what another check finds is a fact about the stack, and no fault."""


def classify_property(stack_property: StackProperty) -> str:
    """Return the class of the shared style that marks a property; none for one without yes or no.

    Example:
        >>> classify_property(StackProperty("padding", False, "")), classify_property(StackProperty("order", False, ""))
        ('fails', 'differs')

    """
    if stack_property.holds is None:
        return ""
    return "holds" if stack_property.holds else "fails" if stack_property.name in FAULT_CHECKS else "differs"


def check_stack_properties(batch: CreditedBatch) -> Iterator[StackProperty]:
    """Yield the declared and the checked properties of a stack."""
    stack, group = batch.stack, batch.rollout.group_size
    limit = bound_advantages(stack, group)[-1]
    for operator in stack:
        reads, writes = (", ".join(sorted(names)) or "nothing" for names in (operator.reads, operator.writes))
        yield StackProperty(type(operator).__name__, None, f"reads {reads}; writes {writes}")
    bound_text = (
        f"at most {limit:.4g} in size for rewards in [0, 1]" if math.isfinite(limit) else "no bound is declared"
    )
    yield StackProperty("bound", True if math.isfinite(limit) else None, bound_text)
    part = batch.rollout
    if any(operator.costly for operator in stack):
        part = part.select_rows(torch.arange(min(CHECKED_PROMPTS * group, len(part.mask))))
    yield StackProperty("checked on", None, f"{len(part.mask) // group} prompts x {group} completions")
    repeatability = _run_property_check("repeatable", lambda: check_repeatability(stack, part))
    yield repeatability
    for name, check in STACK_CHECKS.items():
        if repeatability.holds is False:
            yield StackProperty(name, None, "could not be checked: credit is drawn anew each time")
        else:
            yield _run_property_check(name, lambda check=check: check(stack, part))
    yield _run_property_check("neutral value", lambda: find_neutral_arguments(stack, part))


def describe_rewards_counted(rewards: str) -> list[StackProperty]:
    """Return the way in which rewards count, in words; nothing where they are one for right and zero for wrong."""
    return [StackProperty("reward functions", None, rewards)] if rewards else []


def _run_property_check(name: str, check: Callable[[], Found]) -> StackProperty:
    """Return the result of a check, or the error that a user's operator raised in it."""
    try:
        return StackProperty(name, *check())
    except Exception as error:  # noqa: BLE001
        return StackProperty(name, None, f"could not be checked: {type(error).__name__}: {error}")
