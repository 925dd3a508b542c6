"""A list of operators, checked like a program before weights are loaded."""

import inspect
import math
from collections.abc import Iterable, Sequence

from rlcredit.credit.catalogue import find_usual_writer
from rlcredit.credit.contract import OperatorContract, StackError, select_operators
from rlcredit.credit.rollout import MEANINGFUL_FIELDS
from rlcredit.formulas.reward_histogram import RewardHistogram

CREDIT_FIELDS = frozenset(["rewards", "advantages"])
"""Fields that are credit or its sources; the others describe tokens."""


def check_stack(callbacks: Iterable[object]) -> None:
    """Reject a stack that reads what nothing wrote, or writes what does not reach the advantages.

    Args:
        callbacks: Callbacks as listed in ``trainer.callbacks``; those that are not credit operators are passed over.

    Raises:
        StackError: with the operator, the field and the repair.

    """
    stack = select_operators(callbacks)
    for place, operator in enumerate(stack):
        for name in sorted(operator.reads):
            _refuse_undefined_read(stack, place, name)
        _refuse_ambiguous_state(stack, place)
        _refuse_divided_values(stack, place)
        _refuse_partial_credit(stack, place)
        _refuse_shaped_verdicts(stack, place)
    for place in reversed(range(len(stack))):  # what feeds a dead write is dead too: the lowest is the one at fault
        for name in sorted(stack[place].writes - _find_byproducts(stack[place])):
            _refuse_dead_write(stack, place, name)


def refuse_binary_operators(callbacks: Iterable[object], fact: str, repair: str) -> None:
    """Refuse operators that take rewards of one and zero only, where rewards are other numbers.

    Args:
        callbacks: Callbacks as listed in ``trainer.callbacks``; those that are not credit operators are passed over.
        fact: What gives other rewards, for the message.
        repair: How they would be one and zero, as the second half of an instruction.

    Raises:
        StackError: with the first such operator and the repair.

    """
    binary = [name for operator in select_operators(callbacks) if (name := operator.name_binary_operator())]
    if binary:
        raise StackError(
            f"{binary[0]} takes rewards of one for right and zero for wrong, and {fact}. Put an operator of real "
            f"rewards in its place, such as GRPO or RLOO, or {repair}."
        )


def bound_advantages(stack: Sequence[OperatorContract], group_size: int, has_real_rewards: bool = False) -> list[float]:
    """Return the largest advantage above each operator and, last, below all; the neutral ledger holds rewards.

    Infinity where none is known, and where credit is made of real or shaped rewards, since these may leave [0, 1].

    Args:
        stack: Operators, from top to bottom.
        group_size: Completions per prompt, G.
        has_real_rewards: Whether the rewards of the task are any real numbers.

    """
    limits, is_shaped, neutral = [math.inf if has_real_rewards else 1.0], has_real_rewards, True
    for operator in stack:
        limit = operator.bound(limits[-1], group_size)
        is_shaped, neutral = is_shaped or "rewards" in operator.writes, neutral and "advantages" not in operator.writes
        made_of_rewards = neutral or operator.reads | operator.writes >= CREDIT_FIELDS
        limits.append(math.inf if is_shaped and made_of_rewards else limit)
    return limits


def explain_idle_operators(callbacks: Iterable[object], group_size: int, has_real_rewards: bool = False) -> list[str]:
    """Return warnings about operators that cannot have an effect; arguments as for :func:`bound_advantages`."""
    stack = select_operators(callbacks)
    limits = bound_advantages(stack, group_size, has_real_rewards)
    messages = [operator.notice(limit, group_size) for operator, limit in zip(stack, limits, strict=False)]
    return [message for message in messages if message]


def refuse_creditless_stack(callbacks: Iterable[object], group_size: int, has_real_rewards: bool = False) -> None:
    """Refuse a stack that can give no credit at all, so that nothing would be learnt.

    Arguments as for :func:`bound_advantages`.

    Raises:
        StackError: with the operator that gives none, and the repair.

    """
    callbacks = list(callbacks)
    reasons = explain_idle_operators(callbacks, group_size, has_real_rewards)
    if reasons and bound_advantages(select_operators(callbacks), group_size, has_real_rewards)[-1] == 0:
        raise StackError(f"model.sampling.completions: {reasons[-1]}")


def _find_byproducts(operator: OperatorContract) -> frozenset[str]:
    """Return the fields that an operator may write although nothing reads them: what comes with a critic's values."""
    return frozenset(["critic", "critic_weight", "signal"] if "values" in operator.writes else [])


def _refuse_undefined_read(stack: Sequence[OperatorContract], place: int, name: str) -> None:
    """Refuse an undefined read: the field still has a neutral value that means nothing."""
    if name in MEANINGFUL_FIELDS or any(name in operator.writes for operator in stack[:place]):
        return
    reader, later_writers = (
        _operator_name(stack[place]),
        [_operator_name(late) for late in stack[place + 1 :] if name in late.writes],
    )
    usual = find_usual_writer(name)
    writer_name = usual.__name__ if usual else f"an operator that writes `{name}`"
    verb, writer = ("Move", later_writers[0]) if later_writers else ("Put", writer_name)
    raise StackError(
        f"{reader} reads `{name}`, which no callback above it writes. {verb} {writer} above {reader} in the stack."
    )


def _refuse_dead_write(stack: Sequence[OperatorContract], place: int, name: str) -> None:
    """Refuse a dead write: it is overwritten or unused before it has reached the advantages."""
    uses, views = _trace_field_uses(stack)
    if name in uses[place + 1]:
        return
    writer, later_operators = stack[place], stack[place + 1 :]
    overwriting = next((operator for operator in later_operators if name in operator.writes), writer)
    if overwriting is not writer and name not in overwriting.reads:
        overwriter = _operator_name(overwriting)
        move = f"Move {overwriter} above {_operator_name(writer)}"
        repair = move if name in writer.reads else "Keep only one of the two"
        raise StackError(
            f"{overwriter} overwrites the `{name}` of {_operator_name(writer)} before anything uses it. "
            f"{repair} in the stack."
        )
    effective = [reader for number, reader in enumerate(stack[:place]) if reader.writes & uses[number + 1]]
    readers = [_operator_name(reader) for reader in effective if name in reader.reads]
    if name in views[place + 1] and not readers:
        return
    writer_name = _operator_name(writer)
    repair = f"Move {writer_name} above {readers[0]} in" if readers else f"Remove {writer_name} from"
    nothing = "which only probes read" if name in views[place + 1] else "which nothing below it reads"
    raise StackError(f"{writer_name} writes `{name}`, {nothing}. {repair} the stack.")


def _trace_field_uses(stack: Sequence[OperatorContract]) -> tuple[list[set[str]], list[set[str]]]:
    """Return the fields that reach the advantages, and a probe, above each operator and, last, below all.

    Advantages that nobody has written are made of the rewards: there, who uses these uses those. What a probe shows is
    a use of fields that describe tokens, for there are stacks that only measure; of credit it is none.
    """
    uses, views = [{"advantages", "alternatives", "continuations"}], [set[str]()]
    neutral = [not any("advantages" in earlier.writes for earlier in stack[:place]) for place in range(len(stack) + 1)]
    for place in reversed(range(len(stack) + 1)):
        if neutral[place] and "advantages" in uses[0]:
            uses[0] |= {"rewards"}
        if place:
            operator = stack[place - 1]
            for fields, through in ((uses, operator.writes & uses[0]), (views, operator.writes & views[0])):
                fields.insert(0, (fields[0] - operator.writes) | operator.reads if through else set(fields[0]))
            views[0] = (views[0] | (set() if operator.writes else operator.reads)) - CREDIT_FIELDS
    return uses, views


def _refuse_divided_values(stack: Sequence[OperatorContract], place: int) -> None:
    """Refuse an operator that would judge sampled tokens by one critic and all others by another."""
    if not stack[place].reads >= {"critic", "values"}:
        return
    judging = next((operator for operator in reversed(stack[:place]) if "values" in operator.writes), None)
    if judging is not None and "critic" not in judging.writes:
        reader, judge = _operator_name(stack[place]), _operator_name(judging)
        raise StackError(
            f"{reader} needs values of tokens that were not sampled, and {judge} tells none. Put HeadCritic or "
            "RidgeCritic in its place in the stack."
        )


def _refuse_partial_credit(stack: Sequence[OperatorContract], place: int) -> None:
    """Refuse an operator that would change the credit of a sampled token and leave that of its alternatives."""
    operator = stack[place]
    if "advantages" not in operator.writes or "alternatives" in operator.writes:
        return
    crediting = next((earlier for earlier in stack[:place] if "alternatives" in earlier.writes), None)
    if crediting is not None:
        name, giver = _operator_name(operator), _operator_name(crediting)
        raise StackError(
            f"{name} would change the credit of sampled tokens alone, and {giver} gives some to their alternatives as "
            f"well. Move {name} above {giver} in the stack."
        )


def _refuse_shaped_verdicts(stack: Sequence[OperatorContract], place: int) -> None:
    """Refuse an operator of rewards of one and zero where an operator has made other numbers of them."""
    operator, binary = stack[place], stack[place].name_binary_operator()
    shaping = next((shaper for shaper in stack if "rewards" in shaper.writes and shaper is not operator), None)
    if shaping is not None and "rewards" in operator.reads and binary:
        raise StackError(
            f"{binary} takes rewards of one for right and zero for wrong, and "
            f"{_operator_name(shaping)} makes other numbers of them. Keep only one of the two in the stack."
        )


def refuse_narrow_histograms(callbacks: Iterable[object]) -> None:
    """Refuse critics that predict rewards in a histogram that cannot hold them, where verdicts are the rewards.

    Args:
        callbacks: Callbacks as listed in ``trainer.callbacks``; those that are not credit operators are passed over.

    Raises:
        StackError: with the critic and the range that it needs.

    """
    low, high = 0.0, 1.0
    for operator in select_operators(callbacks):
        target = getattr(operator, "target", None)
        is_finite = math.isfinite(low) and math.isfinite(high)
        if isinstance(target, RewardHistogram) and is_finite and not target.low <= low <= high <= target.high:
            raise StackError(
                f"{_operator_name(operator)} predicts rewards from {target.low:g} to {target.high:g}, and they may lie "
                f"from {low:g} to {high:g}. Set its target: {{low: {low:g}, high: {high:g}}}."
            )
        low, high = operator.bound_rewards(low, high)


def _refuse_ambiguous_state(stack: Sequence[OperatorContract], place: int) -> None:
    """Refuse operators that a checkpoint could not tell apart by class and arguments."""
    operator = stack[place]
    if not operator.state:
        return
    if gaps := [name for name in inspect.signature(type(operator)).parameters if name not in operator.arguments]:
        raise StackError(
            f"{_operator_name(operator)} must keep {gaps} under the same name: a checkpoint knows it by its arguments."
        )
    twins = [twin for twin in stack[:place] if type(twin) is type(operator) and twin.arguments == operator.arguments]
    if twins:
        raise StackError(
            f"Two {_operator_name(operator)} with the same arguments would share one state in a checkpoint. "
            "Change an argument of one, or keep only one, in the stack."
        )


def _operator_name(operator: OperatorContract) -> str:
    return type(operator).__name__
