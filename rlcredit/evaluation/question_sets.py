"""The held-out questions of task files that an evaluation asks."""

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcredit.base.files import file_sha256
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.paths import find_config_file
from rlcredit.evaluation.evaluate_options import ALL_QUESTIONS
from rlcredit.tasks.example import Example
from rlcredit.tasks.task import Task


@dataclass(frozen=True)
class QuestionSet:
    """A set of held-out questions.

    Args:
        name: Name of the task file.
        file: Path of the task file.
        task: Task that has read its questions; it judges their answers.
        size: Number of questions asked, the first of the held-out ones.

    """

    name: str
    file: Path
    task: Task
    size: int

    def identity(self) -> dict[str, Any]:
        """Return the marks that tell it from other sets: hashes of the file and of the questions as asked."""
        prompts = self.task.held_out_prompts(0, self.size)
        content = json.dumps(
            [prompts.questions, [example.reference for example in prompts.examples]], ensure_ascii=False
        )
        return {
            "questions": self.size,
            "questions_sha256": hashlib.sha256(content.encode()).hexdigest(),
            "file_sha256": file_sha256(self.file),
            **self._verifier_identity(prompts.examples),
            **self._environment_identity(),
        }

    def _environment_identity(self) -> dict[str, str]:
        """Return the hash of the module of a user's environment; nothing without one."""
        if self.task.environment is None:
            return {}
        cls = type(self.task.environment)
        return {"environment_sha256": file_sha256(Path(inspect.getfile(cls)))}

    def _verifier_identity(self, examples: Sequence[Example]) -> dict[str, str]:
        """Return hashes of a user's verifier and reward functions and of what they read; nothing without any."""
        verifier, rewards = self.task.own, self.task.reward_sum
        if verifier is None and rewards is None:
            return {}
        metadata = json.dumps([example.metadata for example in examples], ensure_ascii=False, default=repr)
        identity = {"metadata_sha256": hashlib.sha256(metadata.encode(errors="surrogatepass")).hexdigest()}
        if verifier is not None:
            identity["verifier_sha256"] = file_sha256(verifier.file) if verifier.file else verifier.path
        if rewards is not None:
            hashes = [file_sha256(file) if file else path for path, file in rewards.files.items()]
            identity["rewards_sha256"] = hashlib.sha256(json.dumps([str(rewards), *hashes]).encode()).hexdigest()
        return identity


def read_question_set(file: Path, questions: int | str | None = None, unsafe: bool = False) -> QuestionSet:
    """Read a task file and its held-out questions.

    Args:
        file: Task file, see :func:`~rlcredit.tasks.task_files.read_task`.
        questions: Number of questions asked, or ``all``; as many as the task holds out if None.
        unsafe: Whether to judge even where the system cannot lock the processes that do.

    Raises:
        ValueError: with the file and the repair.

    """
    file = Path(find_config_file(str(file)))
    name = validate_folder_name("--tasks", file.stem)
    overrides: dict[str, Any] = {"unsafe_scorers": True} if unsafe else {}
    if questions == ALL_QUESTIONS:
        overrides["validation_size"] = None
    task = Task.read(file, **overrides)
    if isinstance(questions, int) and task.validation_size is not None and task.validation_size < questions:
        task = Task.read(file, **overrides, validation_size=questions)
    try:
        task.setup("validate")
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    size = len(task.held_out_set)
    if isinstance(questions, int) and size < questions:
        raise ValueError(f"--questions: {name} holds out only {size} questions, not {questions}. Say --questions all.")
    if size < 2:
        raise ValueError(f"{file}: an interval needs at least two held-out questions, got {size}.")
    return QuestionSet(name, file, task, questions if isinstance(questions, int) else size)
