"""Which tasks a policy solves sometimes, and at which levels: those on which there is something to learn.

python -m studies.smollm2.find_tasks --model policies/smollm2 --out tasks.csv --threads 1

Every level is asked twice: with one sentence that says what is wanted, and with two solved questions before it.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import reasoning_gym
import yaml

from rlcredit.evaluation.evaluate_command import run_evaluate_command as evaluate
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.tables import Table
from rlcredit.tasks.held_out_split import is_held_out
from studies import csv_rows

WANTED = "{question}\nAnswer shortly and end with: The answer is"
POSITIVE = {"operators": ["+"], "allow_parentheses": False, "allow_negation": False}
SIGNED = {**POSITIVE, "operators": ["+", "-"]}


def sum_level_config(terms: int, digits: int, kind: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of sums of one length."""
    return {"min_terms": terms, "max_terms": terms, "min_digits": digits, "max_digits": digits, **kind}


LEVELS: dict[str, tuple[str, dict[str, Any]]] = {
    "sum of 2, one digit": ("basic_arithmetic", sum_level_config(2, 1, POSITIVE)),
    "sum of 3, one digit": ("basic_arithmetic", sum_level_config(3, 1, POSITIVE)),
    "sum of 4, one digit": ("basic_arithmetic", sum_level_config(4, 1, POSITIVE)),
    "sum of 2, two digits": ("basic_arithmetic", sum_level_config(2, 2, POSITIVE)),
    "sum of 3, two digits": ("basic_arithmetic", sum_level_config(3, 2, POSITIVE)),
    "signed sum of 2, one digit": ("basic_arithmetic", sum_level_config(2, 1, SIGNED)),
    "signed sum of 3, one digit": ("basic_arithmetic", sum_level_config(3, 1, SIGNED)),
    "product of 2, one digit": ("products", {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}),
    "product of 2, two digits": ("products", {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 2}),
    "greatest common divisor, to 20": ("gcd", {"min_value": 1, "max_value": 20}),
    "greatest common divisor, to 100": ("gcd", {"min_value": 1, "max_value": 100}),
    "letters in one word": ("letter_counting", {"min_words": 1, "max_words": 1}),
    "letters in three words": ("letter_counting", {"min_words": 3, "max_words": 3}),
    "a word backwards": ("spell_backward", {"min_word_len": 3, "max_word_len": 3}),
    "three numbers sorted": ("number_sorting", {"min_numbers": 3, "max_numbers": 3}),
    "primes up to 10": ("count_primes", {"min_n": 1, "max_n": 10}),
    "legs of one animal": ("leg_counting", {"min_animals": 1, "max_animals": 1}),
    "isomorphic strings": ("isomorphic_strings", {}),
}
"""Data sets of reasoning-gym and their configurations, the easier ones first."""


def main() -> None:
    """Write the task files, evaluate, and tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="as in rlcredit evaluate")
    parser.add_argument("--out", type=Path, required=True, help="CSV file, a row per level and way of asking")
    parser.add_argument("--out", type=Path, default=Path("evaluations/levels"), help="where answers are kept")
    parser.add_argument("--questions", type=int, default=16, help="per level")
    parser.add_argument("--completions", type=int, default=4, help="per question")
    parser.add_argument("--max_tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    tasks = args.out / "tasks"
    tasks.mkdir(parents=True, exist_ok=True)
    asked = {f"level_{place}_{way}": (level, way) for place, level in enumerate(LEVELS) for way in ("told", "shown")}
    for name, (level, way) in asked.items():
        (tasks / f"{name}.yaml").write_text(
            yaml.safe_dump(make_level_task(*LEVELS[level], way, args.questions)), "utf-8"
        )
    files = [str(tasks / f"{name}.yaml") for name in asked]
    sampling = [f"--{name}={getattr(args, name)}" for name in ("completions", "max_tokens", "threads")]
    words = ["--tasks", *files, f"--model={args.model}", *sampling, "--mlflow=none", f"--out={args.out / 'answers'}"]
    if status := evaluate(words):
        raise SystemExit(status)
    found = json.loads((args.out / "answers" / "results.json").read_text("utf-8"))["results"]
    rows = [make_level_row(*asked[name], found[name]) for name in asked]
    csv_rows.write_csv_rows(args.out, rows)
    print(render_level_table(rows))


def make_level_task(name: str, config: dict[str, Any], way: str, questions: int) -> dict[str, Any]:
    """Return a task file: a level, asked in one of two ways."""
    how = {"instruction": WANTED} if way == "told" else {"shots": choose_solved_examples(name, config)}
    drawn = reasoning_gym.create_dataset(name, seed=0, size=500, **config)
    held = len(
        {entry["question"] for entry in drawn if is_held_out(entry["question"])}
    )  # easy levels have few questions
    common = {
        "train_size": 4,
        "prompts_per_step": 4,
        "validation_size": min(questions, held),
        "validation_batch": questions,
    }
    return {"data": {"class_path": "ReasoningGym", "init_args": {"name": name, "config": config, **common, **how}}}


def choose_solved_examples(name: str, config: dict[str, Any]) -> list[dict[str, str]]:
    """Return two solved questions, none of which is held out."""
    drawn = reasoning_gym.create_dataset(name, seed=1, size=1000, **config)
    free = (entry for entry in drawn if not is_held_out(entry["question"]))
    pairs = [next(free) for _ in range(2)]
    return [{"question": entry["question"], "answer": f"The answer is {entry['answer']}."} for entry in pairs]


def make_level_row(level: str, way: str, found: dict[str, Any]) -> dict[str, str]:
    """Return what was found of a level, the only policy being asked."""
    (scores,) = found.values()
    passed = scores["pass_at_1"]
    numbers = {"pass_at_1": passed["mean"], "low": passed["low"], "high": passed["high"], "tokens": scores["tokens"]}
    shares = {name: scores[name] for name in ("truncated", "no_answer")}
    return {"level": level, "asked": way, **{name: f"{value:.4f}" for name, value in {**numbers, **shares}.items()}}


def render_level_table(rows: list[dict[str, str]]) -> str:
    """Return a table in Markdown: pass@1 of every level, asked both ways, and how often no answer is stated."""
    by_level: dict[str, dict[str, dict[str, str]]] = {}
    for each in rows:
        by_level.setdefault(each["level"], {})[each["asked"]] = each
    lines = [
        [level, *_format_level_cells(ways["told"]), *_format_level_cells(ways["shown"])]
        for level, ways in by_level.items()
    ]
    return Table(["level", "told", "without an answer", "shown", "without an answer"], lines).to_markdown()


def _format_level_cells(found: dict[str, str]) -> tuple[str, str]:
    passed, low, high, silent = (float(found[name]) for name in ("pass_at_1", "low", "high", "no_answer"))
    return format_with_interval(passed, low, high, ".2f"), f"{silent:.0%}"


if __name__ == "__main__":
    main()
