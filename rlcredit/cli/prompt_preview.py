"""A preview of one prompt and of how answers to it are judged; no weights are needed."""

from collections.abc import Iterator
from typing import Any

from rlcredit.base.text_escaping import escape_controls
from rlcredit.cli.episode_text import preview_exchange
from rlcredit.policy.chat_turns import Conversation
from rlcredit.policy.model_loading import load_tokenizer
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError
from rlcredit.tasks import Example, Task
from rlcredit.verification.answer_formats import state_answer

NO_ANSWER = "I do not know."


def preview_first_prompt(policy: Policy, task: Task) -> Iterator[str]:
    """Yield lines about one training question: its prompt, its length, and the verdicts on some example answers.

    Args:
        policy: Policy, not loaded; only its tokenizer is read.
        task: Task whose examples are read.

    Raises:
        PromptError: the tokenizer cannot write it.

    """
    task.setup("fit" if task.has_training else "validate")
    example = (task.train_set or task.held_out_set)[0]
    tokenizer = load_tokenizer(policy.location)
    conversation = task.build_conversation(example)
    try:
        policy.prompt.refuse_lost_parts(tokenizer, conversation)
        (ids,) = policy.prompt.encode_conversations(tokenizer, [conversation], task.tools)
    except PromptError as error:
        raise PromptError(str(error).replace(str(tokenizer.name_or_path), policy.path)) from None
    special = set(tokenizer.all_special_ids) & set(ids)
    names = ", ".join(sorted(tokenizer.convert_ids_to_tokens(list(special)))) or "none"
    yield f"first prompt, {len(ids)} tokens, special ones: {names}"
    yield from (f"  | {line}" for line in decode_prompt(tokenizer, ids).split("\n"))
    yield ""
    if task.prototype is not None:
        yield from preview_exchange(task.prototype, example)
        return
    yield "how answers to it are judged"
    answers = list(dict.fromkeys([*make_example_answers(task, example), NO_ANSWER]))
    verdicts, rewards, _ = task.score(answers, [example] * len(answers))
    reward_texts = [""] * len(answers) if rewards is None else [f"{reward:7.4g}  " for reward in rewards.tolist()]
    for answer, verdict, reward in zip(answers, verdicts, reward_texts, strict=True):
        yield f"  {verdict.value:<15} {reward}{escape_controls(answer).replace(chr(10), ' ')}"


def render_prompt(policy: Policy, conversation: Conversation, task: Task | None = None) -> str:
    """Return a conversation as the prompt that a policy reads, with the tools of the task if it has an environment."""
    tools = None if task is None else task.tools
    (ids,) = policy.prompt.encode_conversations(policy.tokenizer, [conversation], tools)
    return decode_prompt(policy.tokenizer, ids)


def decode_prompt(tokenizer: Any, ids: list[int]) -> str:
    """Return tokens as text, special tokens included, with terminal control codes escaped."""
    return escape_controls(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def make_example_answers(task: Task, example: Example) -> Iterator[str]:
    """Yield completions that state the reference, in each accepted format, and another question's answer."""
    for answer in filter(None, example.accepted_answers):
        yield from state_answer(answer, task.answer_formats)
    right_answers = ("", *example.accepted_answers)
    wrong_answers = [row.answer for row in (*task.train_set, *task.held_out_set) if row.answer not in right_answers]
    for wrong_answer in wrong_answers[:1]:
        yield state_answer(wrong_answer, task.answer_formats)[0]
