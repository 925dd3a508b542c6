"""A set of held-out questions, with the names of its metrics and its sampling noise."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rlcredit.decoding.sampling import Sampling

if TYPE_CHECKING:
    from rlcredit.tasks.task import PromptBatch, Task

FAR_APART = 2**40
"""How far the names of the noise of two sets lie apart."""


class HeldOutSet(NamedTuple):
    """Held-out questions that are asked together.

    Attributes:
        name: Name of the set in metrics; empty for the questions of the training task itself.
        number: Number of the set, 0 for those, then in the order in which the configuration names the others; it
            determines the noise.
        task: Task that asks and judges.

    """

    name: str
    number: int
    task: "Task"

    @property
    def size(self) -> int | None:
        """Number of its questions; before they have been read the most that there may be, None if all are asked."""
        count = self.task.held_out_size
        return self.task.validation_size if count is None else count

    def name_metric(self, quantity: str) -> str:
        """Return the name of a metric.

        Example:
            >>> HeldOutSet("", 0, None).name_metric("entropy"), HeldOutSet("aime", 1, None).name_metric("entropy")
            ('val/entropy', 'val/aime/entropy')

        """
        return f"val/{self.name}/{quantity}" if self.name else f"val/{quantity}"

    def choose_sampling(self, usual: Sampling) -> Sampling:
        """Return the sampling of its questions; only the number of completions may differ."""
        completions = self.task.held_out_completions
        return usual if completions is None else replace(usual, completions=completions)

    def choose_k(self, usual: int, completions: int) -> int:
        """Return k of its pass@k.

        Args:
            usual: Value of k that the model uses elsewhere.
            completions: Number of completions that are usually drawn.

        Raises:
            ValueError: more than its completions.

        """
        k, draws = self.task.held_out_k or usual, self.task.held_out_completions or completions
        if k > draws:
            owner = f"of the held-out set {self.name!r}" if self.name else "of the task"
            raise ValueError(
                f"data.init_args.held_out_k {owner} is {k}, but only {draws} completions are drawn. Lower it."
            )
        return k

    def count_answers(self, usual: int) -> int | None:
        """Return the number of answers of one evaluation; None if all of its questions are asked.

        Args:
            usual: Completions per question, where the set has no number of its own.

        """
        return None if self.size is None else self.size * (self.task.held_out_completions or usual)

    def shift_noise_numbers(self, prompts: "PromptBatch") -> "PromptBatch":
        """Return a batch with the prompt numbers that key its noise; no two sets share a number."""
        return replace(prompts, numbers=[number + self.number * FAR_APART for number in prompts.numbers])
