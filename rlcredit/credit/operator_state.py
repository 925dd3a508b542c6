"""What an operator has learned: collected for a checkpoint, restored from one, moved to a device."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcredit.credit.contract import StackError

if TYPE_CHECKING:
    from rlcredit.credit.operator import CreditOperator


def collect_state(operator: "CreditOperator") -> dict[str, Any]:
    """Return what an operator has learned, by the names of its attributes.

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
        return [_move_tensors(each, device) for each in value]
    if isinstance(value, dict):
        return {name: _move_tensors(each, device) for name, each in value.items()}
    return value
