"""A question with its answer, and an example shown before it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from rlcredit.prompt import Conversation


class Example(NamedTuple):
    """One question.

    Attributes:
        question: a text, or turns; before the task's instruction, system prompt and shots.
        answer: what a verifier compares with.
        metadata: whatever the task's own scorer needs.
        alternatives: further answers that are as right as the first.

    """

    question: str | Conversation
    answer: str
    metadata: dict[str, Any]
    alternatives: tuple[str, ...] = ()

    @property
    def accepted_answers(self) -> tuple[str, ...]:
        """All answers of which a completion must state one."""
        return (self.answer, *self.alternatives)

    @property
    def reference(self) -> str:
        """All accepted answers as one text, which is shown to people and tells this question from others in digests.

        Example:
            >>> Example("1/2 of 1?", "0.5", {}).reference, Example("1/2 of 1?", "0.5", {}, ("1/2",)).reference
            ('0.5', '0.5 or 1/2')

        """
        return " or ".join(self.accepted_answers)

    @property
    def text(self) -> str:
        """The question as one text, which identifies it and is shown to people.

        Example:
            >>> Example([{"role": "user", "content": "4 + 3 ="}], "7", {}).text
            'user: 4 + 3 ='

        """
        if isinstance(self.question, str):
            return self.question
        return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in self.question)


@dataclass
class Shot:
    """An example that the policy is shown before every question.

    Args:
        question: written by the task's instruction, as every question is.
        answer: as the policy should write it.

    """

    question: str
    answer: str
