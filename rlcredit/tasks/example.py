"""A question with its answer."""

from typing import Any, NamedTuple


class Example(NamedTuple):
    """One question.

    Attributes:
        question: as the policy reads it, before the chat template.
        answer: what a verifier compares with.
        metadata: whatever the task's own scorer needs.

    """

    question: str
    answer: str
    metadata: dict[str, Any]
