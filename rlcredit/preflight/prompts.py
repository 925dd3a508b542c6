"""Whether the prompts of a task can be rendered for a policy, checked without reading its weights."""

import heapq
from collections.abc import Sequence
from functools import partial
from typing import Any

from rlcredit.policy.chat_turns import write_turn
from rlcredit.policy.model_loading import load_model_config, load_tokenizer
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat, find_context_length
from rlcredit.preflight.policy import WRITING, refuse_costly_files
from rlcredit.tasks import Example, Task
from rlcredit.training.module import PolicyModule

TRIED = 8
"""Questions that are always written for trial: those with the most characters."""

TEMPLATE = 512
"""Bytes that a chat template may add to a prompt; a token has at least one byte."""

AT_ONCE = 64
"""Prompts that are tokenized together."""


def refuse_unreadable_prompts(module: PolicyModule, task: Task) -> None:
    """Refuse a task whose prompts the policy cannot read, or that leave no room for their answers.

    Args:
        module: Module, not loaded; its policy exists.
        task: Task with its data read, that of its further held-out sets too.

    Raises:
        PromptError: the tokenizer cannot write them, or they are too long.

    """
    policy, most = module.policy, max(module.sampling.max_tokens, module.validation.max_tokens)
    tokenizer, context = load_tokenizer(policy.location), find_context_length(load_model_config(policy.location))
    for name, asked in {"": task, **task.others}.items():
        try:
            _refuse_overlong_prompts(asked, policy, tokenizer, context, most)
        except PromptError as error:
            raise PromptError(f"data.held_out.{name}: {error}" if name else str(error)) from None


def _refuse_overlong_prompts(asked: Task, policy: Policy, tokenizer: Any, context: int | None, most: int) -> None:
    prompt, name = policy.prompt, policy.path
    examples = [*asked.train_set, *asked.held_out_set]
    tried = heapq.nlargest(TRIED, examples, key=lambda example: len(example.text))
    if tried:
        said = [asked.build_conversation(example) for example in tried]
        refuse_costly_files(policy, "Its chat template", WRITING, partial(prompt.encode_conversations, tokenizer, said))
    for example in {_list_parts(example): example for example in examples}.values():
        prompt.refuse_lost_parts(tokenizer, asked.build_conversation(example))
    lengths = count_prompt_tokens(asked, tried, prompt, tokenizer)
    if context is None or not examples:
        return
    others = [example for example in examples if _count_prompt_bytes(asked, example) + TEMPLATE > context - most]
    lengths |= count_prompt_tokens(asked, others, prompt, tokenizer)
    longer = [example for example in examples if lengths.get(id(example), 0) + most > context]
    if not longer:
        return
    longest = max(longer, key=lambda example: lengths[id(example)])
    tokens, characters = lengths[id(longest)], min(len(example.text) for example in longer) - 1
    left_out = sum(len(example.text) > characters for example in examples)
    if tokens >= context:
        what, way = f"a prompt has {tokens:,} tokens, and {name} reads {context:,}, its answer included", ""
    else:
        what = f"the longest prompt and its answer may have {tokens + most:,} tokens, and {name} reads {context:,}"
        way = "Lower max_tokens of model.sampling and model.validation. "
    if left_out < len(examples):
        shortening = asked.suggest_shortening(characters, left_out)
    else:
        shortening = Task.suggest_shortening(asked, 0, 0)
    raise PromptError(
        f"{asked.locate_example(longest)}: {what}. Too long are {len(longer):,} of {len(examples):,} prompts. {way}"
        f"{shortening}"
    )


def _list_parts(example: Example) -> frozenset[tuple[str, str]]:
    """Return the roles and keys of a question's turns; questions with the same are written by the same template."""
    if isinstance(example.question, str):
        return frozenset()
    return frozenset((turn["role"], key) for turn in example.question for key in turn)


def count_prompt_tokens(
    asked: Task, examples: Sequence[Example], prompt: PromptFormat, tokenizer: Any
) -> dict[int, int]:
    """Return the number of prompt tokens of some questions, by the ``id`` of their examples."""
    lengths = {}
    ordered = sorted(examples, key=lambda example: len(example.text))
    for start in range(0, len(ordered), AT_ONCE):
        part = ordered[start : start + AT_ONCE]
        encoded = prompt.encode_conversations(tokenizer, [asked.build_conversation(example) for example in part])
        lengths |= dict(zip(map(id, part), map(len, encoded), strict=True))
    return lengths


def _count_prompt_bytes(asked: Task, example: Example) -> int:
    return sum(len(write_turn(turn).encode(errors="surrogatepass")) for turn in asked.build_conversation(example))
