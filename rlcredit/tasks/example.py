"""A question with its answer, examples shown before it, and the conversation that they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlcredit.policy.chat_turns import ChatMessage, Conversation, parse_conversation, write_turn

NO_REFERENCE = "(no answer)"
"""Stands where the reference of a question without an answer would."""


class Example(NamedTuple):
    """One question.

    Attributes:
        question: Text of the question, or its turns; before the task's instruction, system prompt and shots.
        answer: Answer that a verifier compares with; empty where there is none.
        metadata: Whatever the task's own scorer needs.
        alternatives: Further answers that are as right as the first.
        columns: Columns that question and answer were read from, as the data has them, for reward functions.

    """

    question: str | Conversation
    answer: str
    metadata: dict[str, Any]
    alternatives: tuple[str, ...] = ()
    columns: dict[str, Any] | None = None

    @property
    def accepted_answers(self) -> tuple[str, ...]:
        """All accepted answers; a completion must state one of them."""
        return (self.answer, *self.alternatives)

    @property
    def reference(self) -> str:
        """All accepted answers as one text, to show to people and to identify the question in digests.

        Example:
            >>> Example("1/2 of 1?", "0.5", {}).reference, Example("1/2 of 1?", "0.5", {}, ("1/2",)).reference
            ('0.5', '0.5 or 1/2')
            >>> Example("Write a poem.", "", {}).reference
            '(no answer)'

        """
        return " or ".join(self.accepted_answers) or NO_REFERENCE

    @property
    def text(self) -> str:
        """The question as one text, to identify it and to show to people.

        Example:
            >>> Example([{"role": "user", "content": "4 + 3 ="}], "7", {}).text
            'user: 4 + 3 ='

        """
        if isinstance(self.question, str):
            return self.question
        return "\n\n".join(map(write_turn, self.question))

    def list_columns(self) -> dict[str, Any]:
        """Return the columns of the data by name, as reward functions and tool environments read them.

        ``question``, ``answer`` and ``metadata``, all columns in one, are the example's where the data has none such;
        ``answer`` is left out where there is none.

        Example:
            >>> Example("4 + 3 =", "7", {"level": 2}).list_columns()
            {'question': '4 + 3 =', 'answer': '7', 'metadata': {'level': 2}, 'level': 2}

        """
        answer = {"answer": self.answer} if self.answer else {}
        return {"question": self.text, **answer, "metadata": self.metadata, **self.metadata, **(self.columns or {})}


QuestionSets = tuple[list[Example], list[Example]]
"""Training questions, and held-out questions."""


@dataclass
class Shot:
    """An example that the policy is shown before every question.

    Args:
        question: Question, written by the task's instruction, as every question is.
        answer: Answer as the policy should write it.

    """

    question: str
    answer: str


def build_conversation(
    question: str | Conversation, instruction: str = "{question}", system: str | None = None, shots: Sequence[Shot] = ()
) -> Conversation:
    """Return the conversation that the policy is asked.

    Args:
        question: Text of the question, or its turns; the instruction is written around its last turn.
        instruction: ``{question}`` stands for the question; shots are written by it too.
        system: First turn; none if None.
        shots: Questions with their answers, before the question.

    Raises:
        ValueError: the turns are malformed, or have a system prompt of their own beside another.

    Example:
        >>> for turn in build_conversation("4 + 3", "{question} =", shots=[Shot("1 + 1", "2")]):
        ...     print(turn["role"], turn["content"])
        user 1 + 1 =
        assistant 2
        user 4 + 3 =

    """
    turns = parse_conversation(question)
    if turns[0]["role"] == "system":
        if system is not None:
            raise ValueError(
                f"data.init_args.system: the question already has a system prompt, "
                f"{turns[0]['content']!r:.80}. Remove one."
            )
        system, turns = turns[0]["content"], turns[1:]
    messages = [] if system is None else [ChatMessage(role="system", content=system)]
    for shot in shots:
        messages.append(ChatMessage(role="user", content=instruction.replace("{question}", shot.question)))
        messages.append(ChatMessage(role="assistant", content=shot.answer))
    last_turn: ChatMessage = {**turns[-1], "content": instruction.replace("{question}", turns[-1]["content"])}
    return [*messages, *turns[:-1], last_turn]
