"""How a conversation is written for a model: by its chat template, or as raw text for a base model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from rlcredit.base.exit_status import RunStopped
from rlcredit.policy.chat_turns import ChatMessage, Conversation, parse_conversation

PADDING = -1
"""Fills shorter prompts on the left. It is no token of any model; a model's own pad token may begin a prompt."""

THINKING_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<thoughts>": "</thoughts>",
    "<analysis>": "</analysis>",
    "<reflection>": "</reflection>",
    "<scratchpad>": "</scratchpad>",
    "[THINK]": "[/THINK]",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
}
"""Tags around a model's thinking, as chat templates of 2025 and 2026 write them."""


DEFAULT_TURN_END = "\n"
"""Text that ends a turn in raw text, if no other is named."""


Tools = Sequence[Mapping[str, Any]]
"""Schemas of tools, as chat templates take them."""


class PromptError(RunStopped, ValueError):
    """A conversation that cannot be written for this model; the message names the option."""


@dataclass
class PromptFormat:
    """How conversations are written for the model.

    Args:
        chat: Whether the tokenizer's chat template writes conversations; it decides about special tokens. If false,
            they are raw text for a base model: system prompt, examples and question as blocks with an empty line
            between them, each answer behind its question; the tokenizer adds the special tokens that it adds to any
            text.
        thinking: Value of ``enable_thinking`` for the template; the template's own default if None.
        turn_end: Text that ends each turn of an episode, the policy's and the environment's, in raw text; a chat
            template has its own.

    """

    chat: bool = True
    thinking: bool | None = None
    turn_end: str = DEFAULT_TURN_END

    def __post_init__(self) -> None:
        """Refuse a template option if no template is used, and an option of raw text if one is."""
        if self.thinking is not None and not self.chat:
            raise ValueError(
                "model.policy.prompt.thinking is an option of chat templates, and chat is false. Drop one."
            )
        if self.turn_end != DEFAULT_TURN_END and self.chat:
            raise ValueError("model.policy.prompt.turn_end is an option of raw text, and chat is true. Drop one.")
        if not self.turn_end:
            raise ValueError("model.policy.prompt.turn_end is empty. Name the text that ends a turn, as a line break.")

    def __str__(self) -> str:
        """Return the settings that are not the default, as text for a summary.

        Example:
            >>> str(PromptFormat()), str(PromptFormat(chat=False)), str(PromptFormat(thinking=False))
            ('', ', raw text', ', thinking off')

        """
        if not self.chat:
            return ", raw text"
        return "" if self.thinking is None else f", thinking {'on' if self.thinking else 'off'}"

    def refuse_tokenizer(self, tokenizer: Any, name: str) -> None:
        """Refuse a tokenizer that cannot write prompts in this way.

        Args:
            tokenizer: Tokenizer of the model.
            name: Name of the model, for the message.

        Raises:
            PromptError: it has no chat template, or one that knows no thinking.

        """
        if not self.chat:
            return
        if not tokenizer.chat_template:
            raise PromptError(
                f"{name} has no chat template, as base models have none. Set model.policy.prompt.chat to false to "
                "write its prompts as raw text, or name a model that was trained to chat."
            )
        if self.thinking is not None and "enable_thinking" not in tokenizer.get_chat_template():
            raise PromptError(
                f"model.policy.prompt.thinking is {str(self.thinking).lower()}, but the chat template of {name} knows "
                "no `enable_thinking`. Leave it null."
            )

    def find_thinking_mark(self, tokenizer: Any) -> str:
        """Return the thinking tag that prompts end with, inside which completions begin.

        Args:
            tokenizer: Tokenizer of the model.

        Returns:
            One of :data:`THINKING_TAGS`, or nothing.

        """
        if not self.chat:
            return ""
        prompt = self.render_conversations(tokenizer, [parse_conversation("4 + 3 =")])[0].rstrip()
        return next((mark for mark in THINKING_TAGS if prompt.endswith(mark)), "")

    def render_conversations(
        self, tokenizer: Any, conversations: Sequence[Conversation], tools: Tools | None = None
    ) -> list[str]:
        """Return each conversation as the text that is tokenized, special tokens of a template included.

        Args:
            tokenizer: Tokenizer of the model.
            conversations: Conversations, P of them.
            tools: Schemas of the tools of an environment that answers in turns, if it has any; None where a question is
                answered once.

        Raises:
            PromptError: the template refuses a conversation, or there is none.

        """
        if not self.chat:
            end = "" if tools is None else self.turn_end
            return ["\n\n".join(filter(None, _render_raw_blocks(conversation))) + end for conversation in conversations]
        self.refuse_tokenizer(tokenizer, tokenizer.name_or_path)
        options: dict[str, Any] = {} if self.thinking is None else {"enable_thinking": self.thinking}
        if tools:
            options["tools"] = list(tools)
        try:
            return tokenizer.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False, **options)
        except Exception as error:  # noqa: BLE001  (a template is a program of others)
            cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise PromptError(
                f"The chat template of {tokenizer.name_or_path} refuses a conversation: {cause}. Some know no "
                "system prompt (data.init_args.system), some want the turns of user and assistant to alternate."
            ) from None

    def refuse_tools(self, tokenizer: Any, tools: Tools) -> None:
        """Refuse tools that a prompt would not show.

        Args:
            tokenizer: Tokenizer of the model.
            tools: Schemas of the tools.

        Raises:
            PromptError: raw text is written, or the template knows no tools.

        """
        conversations = [parse_conversation("4 + 3 =")]
        if tools and self.render_conversations(tokenizer, conversations, tools) == self.render_conversations(
            tokenizer, conversations, ()
        ):
            writer = f"the chat template of {tokenizer.name_or_path}" if self.chat else "raw text"
            names = ", ".join(tool["function"]["name"] for tool in tools)
            raise PromptError(
                f"data.init_args.environment has tools ({names}), and {writer} shows none. Name a "
                f"model whose template does, or, "
                "for a tool of one argument, set ToolEnvironment(..., plain=True): then an action is the argument."
            )

    def refuse_lost_parts(self, tokenizer: Any, conversation: Conversation) -> None:
        """Refuse a conversation of which a part stands in no prompt: without it, the prompt would be the same.

        Args:
            tokenizer: Tokenizer of the model.
            conversation: Conversation.

        Raises:
            PromptError: the template leaves something out, or cannot write the conversation.

        """
        whole = self.render_conversations(tokenizer, [conversation])
        for place, turn in enumerate(conversation):
            for key in _list_written_keys(turn, conversation):
                changed_turns = [*conversation[:place], _change_part(turn, key), *conversation[place + 1 :]]
                if self._is_rendered_alike(tokenizer, changed_turns, whole):
                    writer = f"The chat template of {tokenizer.name_or_path}" if self.chat else "Raw text"
                    raise PromptError(
                        f"{writer} leaves out `{key}` of a turn whose role is {turn['role']}: {turn[key]!r:.80}. "
                        "Leave it out of the data, or name a model whose template writes it."
                    )

    def _is_rendered_alike(self, tokenizer: Any, conversation: Conversation, whole: list[str]) -> bool:
        try:
            return self.render_conversations(tokenizer, [conversation]) == whole
        except PromptError:  # the template wants the part
            return False

    def encode_conversations(
        self, tokenizer: Any, conversations: Sequence[Conversation], tools: Tools | None = None
    ) -> list[list[int]]:
        """Return the token ids of each conversation; see :meth:`render_conversations`."""
        # A template has written its own special tokens; what is too long is refused in our own words.
        texts = self.render_conversations(tokenizer, conversations, tools)
        return tokenizer(texts, add_special_tokens=not self.chat, verbose=False)["input_ids"]


def _list_written_keys(turn: ChatMessage, conversation: Conversation) -> list[str]:
    """Return the keys of a turn that a prompt must show: not its role, nor what only ties a tool's turn to its call."""
    is_answer = turn["role"] == "tool"
    is_called = any("tool_calls" in other_turn for other_turn in conversation)
    passed_over = {"role", *(["tool_call_id"] * is_answer), *(["name"] * (is_answer and is_called))}
    return [key for key in turn if key not in passed_over and turn[key]]


def _change_part(turn: ChatMessage, key: str) -> ChatMessage:
    """Return a turn with another content, or without a further key."""
    if key == "content":
        return {**turn, "content": f"{turn['content']} 7"}
    return cast("ChatMessage", {name: value for name, value in turn.items() if name != key})


def left_padded_ids(prompts: Sequence[Sequence[int]], multiple: int = 1) -> Tensor:
    """Return prompts with :data:`PADDING` on the left, shape ``(P, L)``, L a multiple of ``multiple``.

    Example:
        >>> left_padded_ids([[7, 8, 9], [0]])
        tensor([[ 7,  8,  9],
                [-1, -1,  0]])

    """
    width = max(map(len, prompts))
    width += -width % multiple
    return torch.tensor([[PADDING] * (width - len(prompt)) + list(prompt) for prompt in prompts])


def refuse_unknown_tokens(prompts: Sequence[Sequence[int]], rows: int, tokenizer: Any, name: str) -> None:
    """Refuse prompts with a token that a model has no embedding for.

    Args:
        prompts: Token ids.
        rows: Number of embeddings of the model.
        tokenizer: Tokenizer of the model.
        name: Name of the model, for the message.

    Raises:
        PromptError: with the token.

    """
    beyond = [token for prompt in prompts for token in prompt if token >= rows]
    if beyond:
        token = tokenizer.convert_ids_to_tokens(beyond[0])
        raise PromptError(f"a prompt has the token {token!r}, for which {name} has no embedding. Leave it out.")


def find_context_length(config: Any) -> int | None:
    """Return the number of tokens a model can read, prompt and completion together; None if it names no limit."""
    return getattr(config.get_text_config(), "max_position_embeddings", None)


def refuse_long_prompts(lengths: Sequence[int], context: int | None, name: str) -> None:
    """Refuse prompts that leave no room for an answer.

    Args:
        lengths: Lengths of the prompts, in tokens.
        context: Context length of the model, in tokens; None if it has no limit.
        name: Name of the model, for the message.

    Raises:
        PromptError: with the length of the longest.

    """
    if context is not None and max(lengths) >= context:
        raise PromptError(
            f"a prompt has {max(lengths):,} tokens, and {name} reads {context:,}, its answer included. Leave out long "
            "questions, or shorten data.init_args.instruction, system or shots."
        )


def _render_raw_blocks(conversation: Conversation) -> Iterator[str]:
    """Yield the blocks of a raw text; an answer follows its question after one space."""
    block = ""
    for turn in conversation:
        if turn["role"] == "assistant":
            space = "" if not block or block[-1].isspace() or turn["content"][:1].isspace() else " "
            block += space + turn["content"]
        else:
            yield block
            block = turn["content"]
    yield block
