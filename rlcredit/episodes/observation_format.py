"""How the turns of an episode are written for a policy, and read: as lines of raw text, or as messages of a chat."""

from collections.abc import Sequence
from typing import Any

from rlcredit.policy.chat_turns import ChatMessage, Conversation
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat, Tools
from rlcredit.verification.answer_formats import drop_thinking

CONVERSATION_MARKS = ("Question 4711", "Answer 4712", "Observation 4713")
"""Texts of a conversation that is written to find what a template writes between them."""


class LineTurns:
    """Turns in raw text: a policy's turn ends with a text, and so does what the environment answers.

    Args:
        tokenizer: Tokenizer of the policy.
        stops: Tokens that end a turn, too.
        turn_end: Text that ends a turn; what follows it in the same token belongs to no action.

    Raises:
        PromptError: the tokenizer cannot write it.

    """

    def __init__(self, tokenizer: Any, stops: Sequence[int], turn_end: str) -> None:
        self.tokenizer, self.stops, self.turn_end = tokenizer, frozenset(stops), turn_end
        self.turn_ends = (turn_end,)
        self.closing: dict[int, bool] = {}
        if turn_end not in tokenizer.decode(self._encode_text(turn_end)):
            raise PromptError(
                f"model.policy.prompt.turn_end is {turn_end!r}, which the tokenizer of {tokenizer.name_or_path} cannot "
                "write. Name a text that it can."
            )

    def _encode_text(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn ends with the last of its tokens."""
        token = tokens[-1]
        if token in self.stops:
            return True
        if token not in self.closing:
            text = self.tokenizer.decode([token])
            self.closing[token] = self.turn_end[-1] in text or "\ufffd" in text  # or a part of a character
        # A token is at least a byte.
        return self.closing[token] and self.turn_end in self.tokenizer.decode(tokens[-len(self.turn_end.encode()) :])

    def find_action(self, tokens: Sequence[int]) -> str:
        """Return the text of a turn without what ends it."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True).partition(self.turn_end)[0]

    def encode_observation(self, text: str, is_cut: bool = False) -> list[int]:
        """Return the tokens between two turns of the policy, with the end of a turn that was cut before it."""
        end_before = self.turn_end if is_cut else ""
        return self._encode_text(end_before + text + self.turn_end)


class ChatTurns:
    """Turns as messages: the policy's ends with a stop token, and the template writes what follows.

    What a template does to earlier turns changes nothing: only what stands between a turn and the next one is taken.

    Args:
        tokenizer: Tokenizer of the policy.
        stops: Tokens that end a turn.
        prompt: Format of its prompts.
        tools: Schemas of the environment's tools; observations are then what tools have returned.

    Raises:
        PromptError: the template shows no tools, or cannot write an observation.

    """

    turn_ends = ()

    def __init__(self, tokenizer: Any, stops: Sequence[int], prompt: PromptFormat, tools: Tools = ()) -> None:
        prompt.refuse_tools(tokenizer, tools)
        self.tokenizer, self.stops, self.prompt, self.tools = tokenizer, frozenset(stops), prompt, tools
        self.mark = prompt.find_thinking_mark(tokenizer)
        self.turns, self.end_width = self._find_gap()

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn ends with the last of its tokens."""
        return tokens[-1] in self.stops

    def find_action(self, tokens: Sequence[int]) -> str:
        """Return the text of a turn without stop token and thinking; nothing if it ends while it thinks."""
        text = self.tokenizer.decode(tokens[: -1 if self.has_ended(tokens) else None], skip_special_tokens=True)
        return drop_thinking(self.mark + text).lstrip("\n")

    def encode_observation(self, text: str, is_cut: bool = False) -> list[int]:
        """Return the tokens between two turns of the policy, with the end of a turn that was cut before it."""
        conversation = self._render_turns(self.turns, text)
        _, answer, _ = CONVERSATION_MARKS
        start = conversation.index(answer) + len(answer) + (0 if is_cut else self.end_width)
        return self.tokenizer.encode(conversation[start:], add_special_tokens=False)

    def _render_turns(self, turns: Conversation, observation: str) -> str:
        """Return a conversation whose last turn is an observation as text."""
        turn: ChatMessage = {**turns[-1], "content": observation}
        return self.prompt.render_conversations(self.tokenizer, [[*turns[:-1], turn]], self.tools)[0]

    def _find_gap(self) -> tuple[Conversation, int]:
        """Return a conversation that the template writes, and the characters of it that end the policy's turn."""
        _, answer, observation = CONVERSATION_MARKS
        stop_texts = self.tokenizer.convert_ids_to_tokens(sorted(self.stops))
        for turns in self._propose_conversations():
            try:
                conversation = self._render_turns(turns, observation)
            except PromptError:
                continue
            _, is_answered, continuation = conversation.partition(answer)
            gap, is_observed, _ = continuation.partition(observation)
            if is_answered and is_observed:
                ends = [gap.index(stop) + len(stop) for stop in stop_texts if stop in gap]
                return turns, min(ends, default=0)
        role, way_out = ("tool", "") if self.tools else ("user", ", or set model.policy.prompt.chat to false")
        raise PromptError(
            f"The chat template of {self.tokenizer.name_or_path} cannot write an observation as a turn of the role "
            f"{role}. Name another model{way_out}."
        )

    def _propose_conversations(self) -> list[Conversation]:
        """Return conversations of which a template may write one; some write a tool's answer behind its call only."""
        question, answer, observation = CONVERSATION_MARKS
        turns: Conversation = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        if not self.tools:
            return [[*turns, {"role": "user", "content": observation}]]
        name = self.tools[0]["function"]["name"]
        call = {"type": "function", "id": "call00000", "function": {"name": name, "arguments": {}}}
        result: ChatMessage = {"role": "tool", "content": observation, "name": name, "tool_call_id": "call00000"}
        return [[*turns, result], [turns[0], {**turns[1], "tool_calls": [call]}, result]]


TurnFormat = LineTurns | ChatTurns
"""How turns are written; it knows nothing of episodes."""


def choose_turn_format(policy: Policy, tools: Tools = ()) -> TurnFormat:
    """Return the format of turns for a loaded policy; one that cannot write them is refused by :class:`PromptError`."""
    stops = policy.stop_ids.tolist()
    if policy.prompt.chat:
        return ChatTurns(policy.tokenizer, stops, policy.prompt, tools)
    policy.prompt.refuse_tools(policy.tokenizer, tools)
    return LineTurns(policy.tokenizer, stops, policy.prompt.turn_end)
