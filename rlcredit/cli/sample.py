"""``rlcredit sample``: answers of a policy to a question, with log-probability and entropy of every token."""

import argparse
import contextlib
import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.exit_status import FINISHED
from rlcredit.base.files import write_atomically
from rlcredit.base.text_escaping import escape_controls
from rlcredit.cli.command_options import make_sample_parser
from rlcredit.cli.completion_printer import CompletionPrinter, is_colour_wanted
from rlcredit.cli.completions_page import render_completions_page
from rlcredit.cli.policy_arguments import NamedPolicy, load_named_policy, run_or_refuse
from rlcredit.cli.prompt_preview import render_prompt
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.cli.sampled_completions import Completion, sample_completions
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.chat_turns import Conversation
from rlcredit.tasks.example import Example, build_conversation
from rlcredit.tasks.task import Task
from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.verifiers import MathVerifier


def run_sample_command(args: Sequence[str]) -> int:
    """Sample answers; return 0, or 2 if refused."""
    silence_libraries()
    namespace, options = make_sample_parser().parse_known_args(args)
    return run_or_refuse(lambda: _answer_question(namespace, options))


def _answer_question(args: argparse.Namespace, options: Sequence[str]) -> int:
    choose_sampling(args, Sampling())  # refuse what is wrong before anything is loaded
    choice = load_named_policy(args, options)
    sampling, task = choose_sampling(args, choice.sampling), choice.task
    example = Example(args.question, args.answer or "", {"seed": args.seed})
    conversation, examples = _build_conversation(args, task, example), [example] * sampling.completions
    episodes = task.open_episodes(choice.policy, examples) if task else None
    with contextlib.closing(choice.engine):
        request = choice.policy, choice.engine, [conversation], [0], sampling, args.seed
        answers = sample_completions(*request, episodes)[0]
    if task and episodes:
        for completion, verdict in zip(answers, task.score_episodes(episodes, examples).verdicts, strict=True):
            completion.verdict, completion.reference = verdict, args.answer
    elif args.answer is not None:
        judge_completions(answers, args.answer, choice)
    terminal = make_completion_printer(args)
    print_sampling(terminal, choice, sampling)
    for number, completion in enumerate(answers, start=1):
        terminal.print_lines(terminal.render_heading(number, completion), terminal.render_text(completion), "")
        terminal.print_lines(*terminal.render_table(completion))
    if args.html:
        prompts = [(render_prompt(choice.policy, conversation, task), answers)]
        write_completions_page(args.html, args.question, describe_sampling(choice, sampling), prompts)
    return FINISHED


def _build_conversation(args: argparse.Namespace, task: Task | None, example: Example) -> Conversation:
    if task is None:
        return build_conversation(args.question, system=args.system)
    system = task.system if args.system is None else args.system
    return build_conversation(task.find_question(example), task.instruction, system, task.shots)


def judge_completions(answers: Sequence[Completion], reference: str, choice: NamedPolicy) -> None:
    """Set answer, reference and verdict of each completion."""
    verifier = choice.task.verifier if choice.task else MathVerifier()
    texts = choice.policy.prepend_thinking_mark([item.text for item in answers])
    verdicts = verifier.judge(texts, [reference] * len(answers))
    for completion, text, verdict in zip(answers, texts, verdicts, strict=True):
        completion.answer, completion.reference = find_final_answer(text, verifier.formats), reference
        completion.verdict = verdict


def choose_sampling(args: argparse.Namespace, sampling: Sampling) -> Sampling:
    """Return the settings of sampling: those of the command line, else those of the configuration."""
    settings = {"completions": args.completions, "temperature": args.temperature, "max_tokens": args.max_tokens}
    return dataclasses.replace(sampling, **{name: value for name, value in settings.items() if value is not None})


def make_completion_printer(args: argparse.Namespace) -> CompletionPrinter:
    """Return a printer for the terminal, or for the stream in its place."""
    return CompletionPrinter(is_colour_wanted(args.colour), shutil.get_terminal_size((100, 24)).columns)


def describe_sampling(choice: NamedPolicy, sampling: Sampling) -> str:
    """Return one line about what is sampled and how."""
    return f"{choice.name}, temperature {sampling.temperature:g}, at most {sampling.max_tokens} tokens"


def print_sampling(terminal: CompletionPrinter, choice: NamedPolicy, sampling: Sampling) -> None:
    """Print what is sampled and how, and the meaning of the colours."""
    legend = [terminal.legend] if terminal.legend else []
    terminal.print_lines(escape_controls(describe_sampling(choice, sampling)), *legend, "")


def write_completions_page(
    path: Path, title: str, description: str, prompts: Sequence[tuple[str, Sequence[Completion]]]
) -> None:
    """Write the page and print its path."""
    write_atomically(path, render_completions_page(title, description, prompts))
    print(f"written to {path}")
