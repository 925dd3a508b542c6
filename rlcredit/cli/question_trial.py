"""``rlcredit try``: answer and judge a few training questions before any training."""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence

from rlcredit.base.exit_status import FINISHED
from rlcredit.base.text_escaping import escape_controls
from rlcredit.cli.command_options import make_try_parser
from rlcredit.cli.completion_printer import CompletionPrinter
from rlcredit.cli.policy_arguments import NamedPolicy, load_named_policy, run_or_refuse
from rlcredit.cli.prompt_preview import render_prompt
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.cli.sample import (
    choose_sampling,
    describe_sampling,
    make_completion_printer,
    print_sampling,
    write_completions_page,
)
from rlcredit.cli.sampled_completions import Completion, sample_completions
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import Example, Task
from rlcredit.tasks.prompt_order import PromptOrder
from rlcredit.training.scored_samples import find_stated_answers, judge_samples
from rlcredit.verification.verifiers import Verdict

_REMEDY_SHARE = 0.25
"""Share of truncated completions, or of those without an answer, from which on a remedy is named."""


def run_try_command(args: Sequence[str]) -> int:
    """Run the trial; return 0, or 2 if refused."""
    silence_libraries()
    namespace, options = make_try_parser().parse_known_args(args)
    return run_or_refuse(lambda: _try_configuration(namespace, options))


def _try_configuration(args: argparse.Namespace, options: Sequence[str]) -> int:
    choose_sampling(args, Sampling())  # refuse what is wrong before anything is loaded
    choice = load_named_policy(args, options)
    if choice.task is None:
        raise ValueError("questions come from a configuration. Name one with --config, or a run with --ckpt_path.")
    sampling, terminal = choose_sampling(args, choice.sampling), make_completion_printer(args)
    trial = answer_training_questions(choice, choice.task, args.questions, sampling, args.seed)
    examples, prompts, answers = [list(column) for column in zip(*trial, strict=True)]
    print_sampling(terminal, choice, sampling)
    print("first prompt, as the model reads it", *(f"  | {line}" for line in prompts[0].split("\n")), "", sep="\n")
    for example, group in zip(examples, answers, strict=True):
        terminal.print_lines(*_render_completions(terminal, example, group))
    print(*summarise_completions([completion for group in answers for completion in group], len(examples)), sep="\n")
    if args.html:
        pairs = list(zip(prompts, answers, strict=True))
        write_completions_page(args.html, "Training questions", describe_sampling(choice, sampling), pairs)
    return FINISHED


def answer_training_questions(
    choice: NamedPolicy, task: Task, questions: int, sampling: Sampling, seed: int
) -> list[tuple[Example, str, list[Completion]]]:
    """Return training questions with their prompts and judged completions.

    Args:
        choice: Policy that answers.
        task: Task whose training questions are read.
        questions: Number of questions, no more than there are.
        sampling: How completions are drawn.
        seed: Seed of the choice of questions and of the sampling noise.

    """
    task.setup()
    questions = min(questions, len(task.train_set))
    numbers = PromptOrder(len(task.train_set), questions, seed, step=lambda: 0).draw_numbers(0)
    examples = [task.train_set[number] for number in numbers]
    conversations = [task.build_conversation(example) for example in examples]
    example_per_text = [example for example in examples for _ in range(sampling.completions)]
    episodes = task.open_episodes(choice.policy, example_per_text)
    with contextlib.closing(choice.engine):
        answers = sample_completions(choice.policy, choice.engine, conversations, numbers, sampling, seed, episodes)
    texts = [completion.text for group in answers for completion in group]
    verdicts = iter(judge_samples(task, choice.policy, texts, example_per_text, episodes).verdicts)
    final_answers = iter(find_stated_answers(task, choice.policy, texts, episodes))
    for example, group in zip(examples, answers, strict=True):
        for completion in group:
            completion.answer, completion.verdict = next(final_answers), next(verdicts)
            completion.reference = None if completion.turns and not example.answer else example.reference
    prompts = [render_prompt(choice.policy, conversation, task) for conversation in conversations]
    return list(zip(examples, prompts, answers, strict=True))


def _render_completions(terminal: CompletionPrinter, example: Example, group: Sequence[Completion]) -> Iterator[str]:
    yield terminal.render_title(escape_controls(example.text))
    for number, completion in enumerate(group, start=1):
        yield terminal.render_heading(number, completion)
        yield terminal.render_text(completion)
        yield ""


def _completion_share(answers: Sequence[Completion], holds: Callable[[Completion], bool]) -> float:
    return sum(map(holds, answers)) / len(answers)


def summarise_completions(answers: Sequence[Completion], questions: int) -> Iterator[str]:
    """Yield counts over all completions, and advice if they would give no update.

    Args:
        answers: Judged completions of each question.
        questions: Number of questions.

    """
    right = _completion_share(answers, lambda one: one.verdict is Verdict.RIGHT)
    truncated_share = _completion_share(answers, lambda one: one.truncated)
    silent = _completion_share(answers, lambda one: one.verdict is Verdict.NO_ANSWER)
    unjudged_share = _completion_share(answers, lambda one: one.verdict is Verdict.UNJUDGED)
    yield (
        f"{len(answers)} completions of {questions} questions: {right:.0%} right, {truncated_share:.0%} truncated, "
        f"{silent:.0%} without an answer, {unjudged_share:.0%} not judged"
    )
    if any(completion.turns for completion in answers):
        reward = sum(completion.reward for completion in answers) / len(answers)
        turns = sum(len(completion.turns) for completion in answers) / len(answers)
        yield f"mean reward {reward:.3g}, {turns:.1f} turns an episode"
    if right == 0:
        yield (
            "Nothing is solved: without a right completion there is no credit. Ask easier questions, or change "
            "data.init_args.instruction."
        )
    if right == 1:
        yield "All is solved: where every completion is right there is no credit. Ask harder questions."
    if truncated_share >= _REMEDY_SHARE:
        yield "Many completions are cut off. Raise model.sampling.max_tokens."
    if silent >= _REMEDY_SHARE:
        yield "Many completions state no answer. Say in data.init_args.instruction how to state it, or give shots."
