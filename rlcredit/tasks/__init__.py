"""Tasks: LightningDataModules of questions and answers.

Importing the package imports every task below it, so that a configuration can say ``class_path: ReasoningGym``.
"""

from rlcredit.tasks.hub import GSM8K, JSONL, MATH, HubDataset
from rlcredit.tasks.reasoning_gym import ReasoningGym
from rlcredit.tasks.records import Records
from rlcredit.tasks.task import Example, PromptBatch, Task

__all__ = ["GSM8K", "JSONL", "MATH", "Example", "HubDataset", "PromptBatch", "ReasoningGym", "Records", "Task"]
