"""What a stack keeps of its operators: their labels, what they have learned, and the credit after each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcredit.credit.contract import StackError
from rlcredit.credit.rollout import Rollout

if TYPE_CHECKING:
    from rlcredit.credit.operator import CreditOperator


def label_operators(operators: "Sequence[CreditOperator]", seed: int) -> None:
    """Number the second and later operators of one class in their labels, and hand on the run's seed."""
    counts: dict[type, int] = {}
    for operator in operators:
        counts[type(operator)] = place = counts.get(type(operator), 0) + 1
        operator.label = type(operator).__name__ + (f"_{place}" if place > 1 else "")
        operator.run_seed = seed


def note_credit(rollout: Rollout, operator: "CreditOperator") -> None:
    """Add the credit after an operator to the rollout's trail, if the operator writes any."""
    if "advantages" in operator.writes:
        rollout.trail = (*rollout.trail, (operator.label, rollout.advantages))


def collect_state(operator: "CreditOperator") -> dict[str, Any]:
    """Return the state of an operator, by the names of its attributes.

    Raises:
        StackError: it is nothing that a checkpoint can hold.

    """
    state = {name: getattr(operator, name) for name in operator.state}
    for name, value in state.items():
        if not _is_loadable(value):
            raise StackError(
                f"{operator.label} keeps {type(value).__name__} `{name}` as state; a checkpoint holds tensors, "
                "numbers, strings, None, and lists and dicts of these."
            )
    return state


def _is_loadable(value: object) -> bool:
    """Whether a checkpoint can restore the value without running code."""
    if isinstance(value, dict):
        return all(map(_is_loadable, value)) and all(map(_is_loadable, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_loadable, value))
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, Tensor)


def restore_state(operator: "CreditOperator", state_dict: dict[str, Any]) -> None:
    """Give an operator back what :func:`collect_state` has returned."""
    for name in operator.state:
        setattr(operator, name, state_dict[name])


def move_state(operator: "CreditOperator", device: torch.device) -> None:
    """Move the tensors of an operator's state to the device of the rollouts; from a checkpoint they come on the CPU."""
    for name in operator.state:
        setattr(operator, name, _move_tensors(getattr(operator, name), device))


def _move_tensors(value: Any, device: torch.device) -> Any:
    """Return a tensor on a device, lists and dicts with all of theirs there, and anything else as it is."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, list):
        return [_move_tensors(item, device) for item in value]
    if isinstance(value, dict):
        return {name: _move_tensors(item, device) for name, item in value.items()}
    return value
