"""Tasks: LightningDataModules of questions and answers.

Importing the package imports every task below it, so that a configuration can say ``class_path: ReasoningGym``.
"""

from rlcredit.episodes import games as games  # environments that a configuration can name
from rlcredit.episodes import text_arena as text_arena
from rlcredit.episodes import tool_environment as tool_environment
from rlcredit.tasks.generated_episodes import Episodes
from rlcredit.tasks.hub import GSM8K, MATH
from rlcredit.tasks.hub import JSONL as JSONL  # named by configurations of recorded runs
from rlcredit.tasks.hub import HubDataset as HubDataset
from rlcredit.tasks.reasoning_gym import ReasoningGym
from rlcredit.tasks.records import Records
from rlcredit.tasks.task import Example, PromptBatch, Task

__all__ = ["GSM8K", "MATH", "Episodes", "Example", "PromptBatch", "ReasoningGym", "Records", "Task"]
