"""Whether the prompts of a task can be rendered for a policy, checked without reading its weights."""

import heapq
from collections.abc import Sequence
from functools import partial
from typing import Any

from rlcredit.policy.chat_turns import write_turn
from rlcredit.policy.model_loading import load_model_config, load_tokenizer
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat, find_context_length
from rlcredit.preflight.policy import TEMPLATE_SECONDS, refuse_costly_files
from rlcredit.tasks import Example, Task
from rlcredit.training.module import PolicyModule

TRIED_QUESTIONS = 8
"""Questions that are always written for trial: those with the most characters."""

TEMPLATE_BYTES = 512
"""Bytes that a chat template may add to a prompt; a token has at least one byte."""

TOKENIZED_PROMPTS = 64
"""Prompts that are tokenized together."""


def refuse_unreadable_prompts(module: PolicyModule, task: Task) -> None:
    """Refuse a task whose prompts the policy cannot read, or that leave no room for their answers.

    Args:
        module: Module, not loaded; its policy exists.
        task: Task with its data read, that of its further held-out sets too.

    Raises:
        PromptError: the tokenizer cannot write them, or they are too long.

    """
    policy, answer_tokens = module.policy, max(module.sampling.max_tokens, module.validation.max_tokens)
    tokenizer, context = load_tokenizer(policy.location), find_context_length(load_model_config(policy.location))
    for name, questions in {"": task, **task.others}.items():
        try:
            _refuse_overlong_prompts(questions, policy, tokenizer, context, answer_tokens)
        except PromptError as error:
            raise PromptError(f"data.init_args.held_out.{name}: {error}" if name else str(error)) from None


def _refuse_overlong_prompts(
    task: Task, policy: Policy, tokenizer: Any, context: int | None, answer_tokens: int
) -> None:
    prompt, name = policy.prompt, policy.path
    prompt.refuse_tools(tokenizer, task.tools or ())
    examples = [*task.train_set, *task.held_out_set]
    long_examples = heapq.nlargest(TRIED_QUESTIONS, examples, key=lambda example: len(example.text))
    if long_examples:
        conversations = [task.build_conversation(example) for example in long_examples]
        refuse_costly_files(
            policy,
            "Its chat template",
            TEMPLATE_SECONDS,
            partial(prompt.encode_conversations, tokenizer, conversations, task.tools),
        )
    for example in {_list_parts(example): example for example in examples}.values():
        prompt.refuse_lost_parts(tokenizer, task.build_conversation(example))
    lengths = count_prompt_tokens(task, long_examples, prompt, tokenizer)
    if context is None or not examples:
        return
    candidates = [
        example for example in examples if _count_prompt_bytes(task, example) + TEMPLATE_BYTES > context - answer_tokens
    ]
    lengths |= count_prompt_tokens(task, candidates, prompt, tokenizer)
    overlong_examples = [example for example in examples if lengths.get(id(example), 0) + answer_tokens > context]
    if not overlong_examples:
        return
    longest_example = max(overlong_examples, key=lambda example: lengths[id(example)])
    tokens, characters = lengths[id(longest_example)], min(len(example.text) for example in overlong_examples) - 1
    left_out = sum(len(example.text) > characters for example in examples)
    if tokens >= context:
        problem, repair = f"a prompt has {tokens:,} tokens, and {name} reads {context:,}, its answer included", ""
    else:
        total = tokens + answer_tokens
        problem = f"the longest prompt and its answer may have {total:,} tokens, and {name} reads {context:,}"
        repair = "Lower max_tokens of model.sampling and model.validation. "
    if left_out < len(examples):
        shortening = task.suggest_shortening(characters, left_out)
    else:
        shortening = Task.suggest_shortening(task, 0, 0)
    raise PromptError(
        f"{task.locate_example(longest_example)}: {problem}. Too long are {len(overlong_examples):,} of "
        f"{len(examples):,} prompts. {repair}"
        f"{shortening}"
    )


def _list_parts(example: Example) -> frozenset[tuple[str, str]]:
    """Return the roles and keys of a question's turns; questions with the same are written by the same template."""
    if isinstance(example.question, str):
        return frozenset()
    return frozenset((turn["role"], key) for turn in example.question for key in turn)


def count_prompt_tokens(
    task: Task, examples: Sequence[Example], prompt: PromptFormat, tokenizer: Any
) -> dict[int, int]:
    """Return the number of prompt tokens of some questions, by the ``id`` of their examples."""
    lengths = {}
    sorted_examples = sorted(examples, key=lambda example: len(example.text))
    for start in range(0, len(sorted_examples), TOKENIZED_PROMPTS):
        part = sorted_examples[start : start + TOKENIZED_PROMPTS]
        conversations = [task.build_conversation(example) for example in part]
        prompts = prompt.encode_conversations(tokenizer, conversations, task.tools)
        lengths |= dict(zip(map(id, part), map(len, prompts), strict=True))
    return lengths


def _count_prompt_bytes(task: Task, example: Example) -> int:
    return sum(len(write_turn(turn).encode(errors="surrogatepass")) for turn in task.build_conversation(example))
