"""``rlcredit sample``: what a policy answers to a question, with log-probability and entropy of every token."""

import argparse
import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from rlcredit.command_line.at_hand import AtHand, add_arguments, at_hand, refused_or
from rlcredit.command_line.quiet import quiet
from rlcredit.engines.sampling import Sampling
from rlcredit.exits import FINISHED
from rlcredit.files import write_atomically
from rlcredit.inputs.arguments import Parser, path
from rlcredit.inputs.strict_yaml import shown
from rlcredit.inspection.completions import Completion, completions
from rlcredit.inspection.page import page
from rlcredit.inspection.shown_prompt import prompt_text
from rlcredit.inspection.terminal import Terminal, coloured
from rlcredit.inspection.visible import harmless
from rlcredit.prompt import Conversation
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tasks.conversation import conversation
from rlcredit.verification.answers import final_answer
from rlcredit.verification.verifiers import MathVerifier


def parser() -> argparse.ArgumentParser:
    """Return what the command line accepts."""
    command_parser = Parser(
        "rlcredit sample", description="Ask a policy a question; print every token's cost.", allow_abbrev=False
    )
    add_arguments(command_parser)
    command_parser.add_argument(
        "--question", required=True, help="text; a configuration's task writes it as one of its own"
    )
    command_parser.add_argument("--answer", help="reference, compared as a number or as mathematics")
    command_parser.add_argument("--system", help="system prompt, instead of the configuration's")
    add_drawing_arguments(command_parser, completions=1)
    return command_parser


def add_drawing_arguments(command_parser: argparse.ArgumentParser, completions: int) -> None:
    """Let a command line say how completions are drawn and shown."""
    drawn = command_parser.add_argument_group("completions")
    drawn.add_argument("-n", type=int, default=completions, help=f"completions of a question; {completions} by default")
    drawn.add_argument("--temperature", type=float, help="the configuration's, or 0.7")
    drawn.add_argument("--max_tokens", type=int, help="the configuration's, or 128")
    drawn.add_argument("--seed", type=int, default=0, help="of the noise; 0 by default")
    output = command_parser.add_argument_group("output")
    output.add_argument("--colour", choices=("auto", "always", "never"), default="auto", help="in a terminal, if auto")
    output.add_argument("--html", type=page_path, metavar="FILE", help="write a page that loads nothing")


def page_path(text: str) -> Path:
    """Return where a page is written: another page may be there, but nothing else, and nothing of a run."""
    page = path(text)
    if page.suffix.lower() not in (".html", ".htm"):
        raise argparse.ArgumentTypeError(f"a page is a file that ends in .html, got {shown(text)}.")
    if page.exists() and any(RunFolder(folder).used for folder in page.absolute().parents):
        raise argparse.ArgumentTypeError(f"{shown(text)} belongs to a run. Name another file.")
    return page


def main(args: Sequence[str]) -> int:
    """Ask; return 0, or 2 for what is refused."""
    quiet()
    parsed, options = parser().parse_known_args(args)
    return refused_or(lambda: _asked(parsed, options))


def _asked(args: argparse.Namespace, options: Sequence[str]) -> int:
    drawing(args, Sampling())  # refuse what is wrong before anything is loaded
    found = at_hand(args, options)
    sampling, said = drawing(args, found.sampling), _said(args, found)
    answers = completions(found.policy, [said], [0], sampling, args.seed)[0]
    if args.answer is not None:
        judge(answers, args.answer, found)
    terminal = terminal_of(args)
    show_about(terminal, found, sampling)
    for number, completion in enumerate(answers, start=1):
        terminal.show(terminal.heading(number, completion), terminal.text(completion), "")
        terminal.show(*terminal.table(completion))
    if args.html:
        asked = [(prompt_text(found.policy, said), answers)]
        write_page(args.html, args.question, about(found, sampling), asked)
    return FINISHED


def _said(args: argparse.Namespace, found: AtHand) -> Conversation:
    task = found.task
    if task is None:
        return conversation(args.question, system=args.system)
    system = task.system if args.system is None else args.system
    return conversation(args.question, task.instruction, system, task.shots)


def judge(answers: Sequence[Completion], reference: str, found: AtHand) -> None:
    """Note answer, reference and verdict of each completion."""
    verifier = found.task.verifier if found.task else MathVerifier()
    texts = found.policy.stated([one.text for one in answers])
    verdicts = verifier.judge(texts, [reference] * len(answers))
    for completion, text, verdict in zip(answers, texts, verdicts, strict=True):
        completion.answer, completion.reference = final_answer(text, verifier.formats), reference
        completion.verdict = verdict


def drawing(args: argparse.Namespace, sampling: Sampling) -> Sampling:
    """Return how completions are drawn: as the command line says, else as the configuration does."""
    named = {"completions": args.n, "temperature": args.temperature, "max_tokens": args.max_tokens}
    return dataclasses.replace(sampling, **{name: value for name, value in named.items() if value is not None})


def terminal_of(args: argparse.Namespace) -> Terminal:
    """Return the terminal, or whatever stands in its place."""
    return Terminal(coloured(args.colour), shutil.get_terminal_size((100, 24)).columns)


def about(found: AtHand, sampling: Sampling) -> str:
    """Say in one line what is sampled and how."""
    return f"{found.name}, temperature {sampling.temperature:g}, at most {sampling.max_tokens} tokens"


def show_about(terminal: Terminal, found: AtHand, sampling: Sampling) -> None:
    """Print what is sampled and how, and what colours mean."""
    legend = [terminal.legend] if terminal.legend else []
    terminal.show(harmless(about(found, sampling)), *legend, "")


def write_page(path: Path, title: str, described: str, asked: Sequence[tuple[str, Sequence[Completion]]]) -> None:
    """Write the page and say where."""
    write_atomically(path, page(title, described, asked))
    print(f"written to {path}")
