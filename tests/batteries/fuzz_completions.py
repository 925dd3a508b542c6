"""Give the tasks thousands of completions as no sane policy writes them, and count what they do.

A completion states a nasty answer in some format, or in several, or almost: control characters, lone surrogates,
unbalanced brackets, endless digits, code, blanks. Whatever it is, `judge` returns a verdict: one that raises is a
fault, and so is a file that code in an answer has made; the exit status is then 1.

    python tests/batteries/fuzz_completions.py --count 100000 --seed 0
"""

import argparse
import collections
import contextlib
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from reasoning_gym.factory import DATASETS

from rlcredit.tasks import Example, ReasoningGym, Task
from rlcredit.tasks.task import require_positive
from rlcredit.verification.answer_formats import FORMAT_RULES, MARKED_FORMATS
from rlcredit.verification.verifiers import Verdict

BATCH = 128
"""Completions that are judged together."""

EVERY_FORMAT = (*MARKED_FORMATS, "number", "whole")

PIECES = (
    *("", " ", "\t", "\n", "\v", "\f", "\r\n", "\0", "\x1b[2J", "\x7f", "\x85", "\u00a0", "\u2028", "\u200b", "\ufeff"),
    *("\ud800", "\udfff", "\u202e", "\u200f", "\U0001f600", "e\u0301" * 5, "\u0663", "\u00b2", "\u00bd", "\u221e"),
    *("{", "}", "(", ")", "[", "]", "$", "$$", "\\", "\\\\", "&", "%", "#", "_", "^", "~", "`", "*", "**", "'", '"'),
    *("\\boxed{", "\\boxed", "\\boxed{}", "<answer>", "</answer>", "####", "the answer is", "Answer:", "\\(", "\\["),
    *("\\frac", "\\frac{}{}", "\\frac{1}{0}", "\\sqrt[", "\\left(", "\\right.", "\\begin{matrix}", "\\end{x}"),
    "\\text{",
    *("\\int", "\\sum_{", "\\lim", "\\infty", "\\mathrm{", "\\%", "\\,", "\\phantom{5}", "\\def\\x{\\x}\\x"),
    "\\input{x}",
    *("9" * 300, "1e999999999", "1/0", "0/0", "-0", "--5", "+-5", "1e", ".", "..", "1.2.3", "1,,2", "0x1F", "1_000"),
    "5!" * 9,
    *("9**9**9**9", "9^{9^{9}}", "nan", "inf", "-inf", "None", "True", "[]", "{}", "()", "[[", "[1,", "{1:"),
    "lambda: 1",
    *("x", "x+1", "C", "E", "I", "pi", "sin(", "sin(x)", "log(0)", "x**x", "x=", "=", "x=5", "a=b=c", ">=", "1 2"),
    "1;2",
    *("5 apples", "about 5", "5 or 6", "not 5", "$5", "5%", "5 m/s^2", "12:30", "2023-01-15", "A", "yes", "(A)", "42"),
    *(
        "import os",
        "__import__('os').system('touch {marker}')",
        "open('{marker}', 'w')",
        "exec('1')",
        "().__class__",
    ),
    *(
        "<script>",
        "; rm -rf x",
        "$(touch {marker})",
        "%s%n",
        "{0}",
        "{marker}",
        "\\write18{touch {marker}}",
    ),
)
"""What answers are made of; ``{marker}`` is a file that must not appear."""


def make_nasty_answer(noise: random.Random, marker: str, reference: str) -> str:
    """Return a nasty answer."""
    pieces = [noise.choice(PIECES) for _ in range(noise.choice((1, 1, 1, 2, 2, 3, 4, 8)))]
    changed = list(reference[:200])
    for _ in range(noise.randrange(3)):
        changed.insert(noise.randrange(len(changed) + 1), noise.choice(PIECES))
    text = noise.choice(
        (
            *("".join(pieces), " ".join(pieces), "".join(pieces), "".join(changed)),
            noise.choice(PIECES) * noise.choice((2, 30, 500)),
            noise.choice("([{") * noise.choice((5, 40, 2000)) + noise.choice(PIECES),
            "".join(chr(noise.randrange(0x110000)) for _ in range(noise.randrange(1, 9))),
            str(noise.randrange(10 ** noise.choice((1, 3, 60)))) + noise.choice(PIECES),
        )
    )
    return text.replace("{marker}", marker)


def make_nasty_completion(noise: random.Random, marker: str, reference: str) -> str:
    """Return a completion that states nasty answers, in some format or almost."""
    stated = []
    for _ in range(noise.choice((1, 1, 1, 2))):
        statement = FORMAT_RULES[noise.choice(EVERY_FORMAT)].statement
        written = statement.replace("ANSWER", make_nasty_answer(noise, marker, reference))
        stated.append(written[: -noise.randrange(1, 4)] if noise.random() < 0.1 else written)
    return noise.choice(("", "so ", "\n", "<think>no</think>")).join(["", *stated])


class GoldQuestions(Task):
    """Answers of mathematics; questions nobody asks."""

    REFERENCES = ("5", r"\frac{1}{2}", "x^2+1", r"\{1,2\}", "(0,1]", r"\text{yes}", "50\\%", "1.5e-7", "x=3", "Paris")

    def examples(self) -> tuple[list[Example], list[Example]]:
        """Return one for each reference."""
        made = [Example(f"question {reference}", reference, {}) for reference in self.REFERENCES]
        return made, made[:1]


def make_fuzzed_tasks(names: Sequence[str]) -> Iterator[tuple[str, Task]]:
    """Yield mathematics, and data sets of reasoning-gym by name; name those that cannot be made, and leave them out."""
    counts = {"answer_formats": EVERY_FORMAT, "verify_budget": 5.0}
    for name in ("mathematics", *names):
        try:
            task = (
                GoldQuestions(**counts)
                if name == "mathematics"
                else ReasoningGym(name, train_size=4, validation_size=1, prompts_per_step=1, **counts)
            )
            task.setup("fit")
        except ValueError as error:
            print(f"{name}: left out, {str(error)[:100]}", file=sys.stderr)
            continue
        yield name, task


def count_judging_outcomes(task: Task, count: int, noise: random.Random, marker: Path) -> collections.Counter[str]:
    """Return how many completions got which verdict, or raised.

    Args:
        task: Task that judges.
        count: Number of completions.
        noise: Random numbers that choose them.
        marker: File that code in an answer would make.

    """
    counted: collections.Counter[str] = collections.Counter()
    for start in range(0, count, BATCH):
        examples = [noise.choice(task.train_set) for _ in range(min(BATCH, count - start))]
        texts = [make_nasty_completion(noise, str(marker), str(example.answer)) for example in examples]
        try:
            verdicts = task.judge(texts, examples)
        except Exception:  # noqa: BLE001  (any is a fault, to be counted)
            traceback.print_exc()
            counted["raised"] += len(texts)
            continue
        counted.update(verdict.name if isinstance(verdict, Verdict) else "no verdict" for verdict in verdicts)
    counted["executed"] += marker.exists()
    return counted


def main() -> int:
    """Fuzz, print a line for each task and one for all; return 1 if a completion raised or acted."""
    parser = argparse.ArgumentParser(description="Give the tasks nasty completions, and count what they do.")
    parser.add_argument("names", nargs="*", help="data sets of reasoning-gym; all by default")
    parser.add_argument("--count", type=int, default=10_000, help="completions, over all tasks")
    parser.add_argument("--seed", type=int, default=0, help="seed of the completions")
    args = parser.parse_args()
    require_positive("--count", args.count)
    names = args.names or sorted(set(DATASETS) - {"composite"})
    each, total = -(-args.count // (len(names) + 1)), collections.Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        marker = Path(folder, "pwned")
        for name, task in make_fuzzed_tasks(names):
            counted = count_judging_outcomes(task, each, random.Random(f"{args.seed} {name}"), marker)
            total += counted
            print(name, dict(counted), flush=True)
        left = os.listdir(folder)
    print(f"{sum(total.values()):,} completions", dict(total), f"files made: {left}")
    return int(bool(total["raised"] or total["no verdict"] or left))


if __name__ == "__main__":
    sys.exit(main())
