"""Whether the prompts of a task can be written for a policy, found out without reading its weights."""

import heapq
from functools import partial

from rlcredit.inputs.targets import WRITING, refuse_excess
from rlcredit.loading import load_config, load_tokenizer
from rlcredit.module import PolicyModule
from rlcredit.prompt import PromptError, context_length, refuse_longer
from rlcredit.tasks import Task

TRIED = 8
"""Questions that are written for trial: those with the most characters."""


def refuse_prompts(module: PolicyModule, task: Task) -> None:
    """Refuse a task whose longest prompts the policy cannot read, or not to the end of their answers.

    Args:
        module: not loaded; its policy exists.
        task: with data read; its further held-out sets too.

    Raises:
        PromptError: the tokenizer cannot write them, or they are too long.

    """
    policy, most = module.policy, max(module.sampling.max_tokens, module.validation.max_tokens)
    tokenizer, context = load_tokenizer(policy.location), context_length(load_config(policy.location))
    for asked in (task, *task.others.values()):
        longest = heapq.nlargest(TRIED, [*asked.train_set, *asked.held_out_set], key=lambda example: len(example.text))
        if not longest:
            continue
        said = [asked.conversation(example) for example in longest]
        refuse_excess(policy, "Its chat template", WRITING, partial(policy.prompt.encoded, tokenizer, said))
        encoded = policy.prompt.encoded(tokenizer, said)
        lengths = encoded["attention_mask"].sum(-1).tolist()
        refuse_longer(lengths, context, policy.path)
        if context is not None and (wanted := max(lengths) + most) > context:
            raise PromptError(
                f"the longest prompt and its answer may have {wanted:,} tokens, and {policy.path} reads {context:,}. "
                "Lower max_tokens of model.sampling and model.validation, or leave out long questions."
            )
