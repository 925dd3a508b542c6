"""Tasks: LightningDataModules of questions and answers.

Importing the package imports every task below it, so that a configuration can say ``class_path: ReasoningGym``.
"""

from rlcredit.tasks.base import Example, PromptBatch, Task
from rlcredit.tasks.hub import GSM8K, MATH, HubDataset
from rlcredit.tasks.jsonl import JSONL
from rlcredit.tasks.reasoning_gym import ReasoningGym
from rlcredit.tasks.records import Records

__all__ = ["GSM8K", "JSONL", "MATH", "Example", "HubDataset", "PromptBatch", "ReasoningGym", "Records", "Task"]
