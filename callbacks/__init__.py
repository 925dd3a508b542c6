"""Operators and probes, in stack order: episode, critics, dense, turns, planning, schedules, signals, tokens, probes.

``from callbacks import GRPO`` imports that operator alone.
"""

from typing import Any

from rlcredit.credit.catalogue import load_operator
from rlcredit.credit.contract import StackError, StackWarning
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.stack_checks import check_stack


def __getattr__(name: str) -> Any:
    """Import the operator of this name."""
    return load_operator(name)


__all__ = ["CreditOperator", "StackError", "StackWarning", "check_stack"]
