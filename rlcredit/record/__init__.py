"""The record of a run: written to its folder step by step, sent to MLflow from there, and read back as tables."""

from typing import TYPE_CHECKING, Any

from rlcredit.base.lazy_names import load_lazy_name

if TYPE_CHECKING:
    from rlcredit.record.destination import MLflowDestination
    from rlcredit.record.logger import RunRecord

__all__ = ["MLflowDestination", "RunRecord"]

_MODULES = {"MLflowDestination": "rlcredit.record.destination", "RunRecord": "rlcredit.record.logger"}


def __getattr__(name: str) -> Any:
    """Import the module of a name at first use, so that reading a record needs no Lightning."""
    return load_lazy_name(__name__, _MODULES, name)
