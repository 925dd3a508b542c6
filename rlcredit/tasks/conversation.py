"""What a task says: system prompt, shots and question as one conversation."""

from collections.abc import Sequence

from rlcredit.prompt import ChatMessage, Conversation, parse_conversation
from rlcredit.tasks.example import Shot


def build_conversation(
    question: str | Conversation, instruction: str = "{question}", system: str | None = None, shots: Sequence[Shot] = ()
) -> Conversation:
    """Return what the policy is asked.

    Args:
        question: a text, or turns; the instruction is written around its last turn.
        instruction: ``{question}`` stands for the question; shots are written by it too.
        system: the first turn; none if None.
        shots: questions with their answers, before the question.

    Raises:
        ValueError: the turns are malformed, or have a system prompt of their own beside another.

    Example:
        >>> for turn in build_conversation("4 + 3", "{question} =", shots=[Shot("1 + 1", "2")]):
        ...     print(turn["role"], turn["content"])
        user 1 + 1 =
        assistant 2
        user 4 + 3 =

    """
    asked = parse_conversation(question)
    if asked[0]["role"] == "system":
        if system is not None:
            raise ValueError(
                f"data.system: a question has a system prompt of its own, {asked[0]['content']!r:.80}. Remove one."
            )
        system, asked = asked[0]["content"], asked[1:]
    said = [] if system is None else [ChatMessage(role="system", content=system)]
    for shot in shots:
        said.append(ChatMessage(role="user", content=instruction.replace("{question}", shot.question)))
        said.append(ChatMessage(role="assistant", content=shot.answer))
    last = ChatMessage(role="user", content=instruction.replace("{question}", asked[-1]["content"]))
    return [*said, *asked[:-1], last]
