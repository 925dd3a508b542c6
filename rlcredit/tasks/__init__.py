"""Tasks: LightningDataModules of questions and answers.

Importing the package imports every task below it, so that a configuration can say ``class_path: ReasoningGym``.
"""

from typing import Any

from rlcredit.config.former_names import load_former_name
from rlcredit.tasks.hub import GSM8K, JSONL, MATH, HubDataset
from rlcredit.tasks.reasoning_gym import ReasoningGym
from rlcredit.tasks.records import Records
from rlcredit.tasks.task import Example, PromptBatch, Task

__all__ = ["GSM8K", "JSONL", "MATH", "Example", "HubDataset", "PromptBatch", "ReasoningGym", "Records", "Task"]


def __getattr__(name: str) -> Any:
    """Return what the package gave under a former name."""
    return load_former_name(f"{__name__}.{name}")
