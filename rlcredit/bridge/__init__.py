"""The stacks of rlcredit in other trainers: credit for a batch of tensors that somebody else has sampled.

``assign_credit`` needs torch and nothing else of the stack: no Lightning, no model.
"""

from typing import TYPE_CHECKING, Any

from rlcredit.base.lazy_names import load_lazy_name

if TYPE_CHECKING:
    from rlcredit.bridge.assignment import assign_credit
    from rlcredit.bridge.bridged_stack import BridgedStack, load_stack

__all__ = ["BridgedStack", "assign_credit", "load_stack"]

_MODULES = {
    "BridgedStack": "rlcredit.bridge.bridged_stack",
    "assign_credit": "rlcredit.bridge.assignment",
    "load_stack": "rlcredit.bridge.bridged_stack",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name when it is first used."""
    return load_lazy_name(__name__, _MODULES, name)
