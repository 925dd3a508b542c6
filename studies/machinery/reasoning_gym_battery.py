"""Ask every data set of reasoning-gym what is not its answer: constants, hedges, denials, and company.

    python -m studies.machinery.reasoning_gym_battery [NAME ...] --out counts.csv

Each kind of answer is counted twice: what the scorer of the package calls right (``..._scorer``), and what ``judge``
does. Lines of data sets that are named are replaced, all others stay. Without a name, all are asked.
"""

import argparse
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reasoning_gym.composite import DatasetSpec

from rlcredit.pages.tables import Table
from rlcredit.tasks import ReasoningGym
from rlcredit.tasks.example import Example
from rlcredit.verification.mathematics.numbers import read_rational
from rlcredit.verification.verifiers import Verdict, strip_name_and_unit
from studies.csv_rows import read_csv_rows, write_csv_rows

RESULTS = Path(__file__).parent / "results"
KINDS = ("constant", "hedge", "denial", "beside", "within")
COLUMNS = [
    *("name", "questions", "references", "references_right", "others", "others_right", "wrong_asked"),
    *itertools.chain.from_iterable((f"{kind}_scorer", kind) for kind in KINDS),
    "unjudged",
]
QUESTIONS, FEWER = 20, {"intermediate_integration": 4, "simple_integration": 4}
"""Questions of each data set; integrals that the scorer compares by itself take long."""
CONSTANTS = [
    *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "nan+nanj", "nan+nani", "nan, nan", "[NaN]", "['nan', 'nan']"),
    *("0", "1", "-1", "2", "0.0", "1e-9", "1/2", "0/0", "1/0", "0x0", "1e999", "[]", "{}", "()", "[[]]", "[0]", '""'),
    *("None", "null", "True", "False", "true", "Yes", "No", "yes or no", "True or False", "-", ".", "?", "*", "a", "A"),
    *("A → B → C", "A B C", "a = 1", "8*3*7/7", "7*3 + 9/3", "24", "24.9", "C", "x", "U", "UDLR", "R", "['a']", "not"),
    *("infeasible", "undetermined", "1 2 3 4 5 6 7 8 9", "0 days", "00:00", "P → P", "¬P", "#", "# 1", "Shape: 1x1"),
]
HEDGES = [
    *("{gold} or {other}", "{other} or {gold}", "{gold} and {other}", "{other} and {gold}", "either {gold} or {other}"),
    *("{gold} (or {other})", "{gold}, maybe {other}", "{gold}? {other}?", "1 2 3 4 5 6 7 8 9 {gold}"),
    *("between {gold} and {other}", "{gold} unless {other}", "{gold} if not {other}"),
]
DENIALS = [
    *("not {gold}", "-{gold}", "Not: {gold}", "¬{gold}", "!{gold}", "no {gold}", "anything but {gold}", "≠ {gold}"),
    *("{gold} is wrong", "{gold} not", "{gold}: no", "never {gold}", "{gold} # not"),
]
BESIDE = [
    template
    for separator in (" ", ", ", "; ", " | ", "\n", "\n\n", " / ", " = ", ": ", " - ", "\t", " → ", " # ", "|", ",")
    for template in ("{gold}" + separator + "{other}", "{other}" + separator + "{gold}")
]
WITHIN = [
    "The answer was {gold}",
    "{gold} it is",
    "{gold} {gold}",
    "a {gold} z",
    "{gold}!?",
    "Shape: 1\n{gold}",
    "{gold}0",
]
TEMPLATES = {"hedge": HEDGES, "denial": DENIALS, "beside": BESIDE, "within": WITHIN}


class CandidateAnswer(NamedTuple):
    """One answer to one question."""

    kind: str
    answer: str
    entry: dict[str, Any]


def solve_boxnet(metadata: dict[str, Any]) -> str:
    """Return a plan that moves each box to its target, first along one axis, then along the other."""
    places = {item: square for square, items in metadata["initial_state"].items() for item in items}
    plan = []
    for box in (item for item in places if item.startswith("box_")):
        target = box.replace("box_", "target_")
        here, goal = ([float(part) for part in places[item].split("_")] for item in (box, target))
        for axis in (0, 1):
            while here[axis] != goal[axis]:
                agent = f"Agent[{here[0]}, {here[1]}]"
                here[axis] += 1 if goal[axis] > here[axis] else -1
                plan.append({agent: f"move({box}, square[{here[0]}, {here[1]}])"})
        plan.append({f"Agent[{here[0]}, {here[1]}]": f"move({box}, {target})"})
    return json.dumps(plan)


def solve_rush_hour(metadata: dict[str, Any]) -> str | None:
    """Return the first shortest sequence of moves, by one square each, that brings the red car to its exit."""
    from reasoning_gym.games.rush_hour import Board  # noqa: PLC0415

    queue, seen = [""], set()
    for moves in queue:
        board = Board(metadata["board_config"])
        board.perform_moves(moves)
        if board.solved:
            return moves.strip()
        if str(board) not in seen:
            seen.add(str(board))
            cars = sorted({car for car in str(board) if car.isupper()})
            queue += [f"{moves} {car}{step}" for car in cars for step in ("+1", "-1")]
    return None


SOLUTIONS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "boxnet": solve_boxnet,
    "graph_color": lambda metadata: json.dumps(metadata["possible_answer"]),
    "polynomial_equations": lambda metadata: ", ".join(map(str, metadata["real_solutions"])) or '""',
    "propositional_logic": lambda metadata: metadata["example_answer"],
    "rubiks_cube": lambda metadata: metadata["example_correct_answer"],
    "rush_hour": solve_rush_hour,
}
"""Right answers of data sets that show none, or an empty one."""

OTHERS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "advanced_geometry": lambda gold, _: gold.strip("()").replace(", ", ","),
    "calendar_arithmetic": lambda gold, _: f" {gold} ",
    "chain_sum": lambda gold, _: f"{int(gold):+,}.00",
    "complex_arithmetic": lambda gold, _: f"({gold.replace(' ', '')})",
    "countdown": lambda gold, _: f"({gold})",
    "cryptarithm": lambda gold, _: ", ".join(reversed(gold.split(","))),
    "fraction_simplification": lambda gold, _: "/".join(re.findall(r"\d+", gold)),
    "game_of_life": lambda gold, _: gold.replace(",", ", "),
    "graph_color": lambda gold, _: gold.replace(" ", ""),
    "group_anagrams": lambda gold, _: json.dumps(json.loads(gold)[::-1]),
    "intermediate_integration": lambda gold, _: gold.replace("C", "K"),
    "kakurasu": lambda gold, _: "\n".join(f"[{line.replace(' ', ', ')}]" for line in gold.splitlines()),
    "knights_knaves": lambda gold, _: ", and ".join(reversed(gold.rstrip(".").split(", and "))),
    "letter_jumble": lambda gold, _: gold.lower(),
    "n_queens": lambda _, metadata: metadata["valid_answers"][-1],
    "number_sorting": lambda gold, _: gold.replace("'", ""),
    "palindrome_partitioning": lambda gold, _: json.dumps(json.loads(gold)[::-1]),
    "pool_matrix": lambda gold, _: gold.replace(" ", "  "),
    "prime_factorization": lambda gold, _: "\N{MULTIPLICATION SIGN}".join(
        gold.split(" \N{MULTIPLICATION SIGN} ")[::-1]
    ),
    "propositional_logic": lambda gold, _: f"¬¬({gold})",
    "puzzle24": lambda gold, _: f"({gold})",
    "quantum_lock": lambda gold, _: gold.replace(" → ", ", ").lower(),
    "rubiks_cube": lambda gold, _: f"{gold} R R'",
    "simple_integration": lambda gold, _: gold.replace("C", "c1"),
    "sokoban": lambda gold, _: " ".join(gold),
    "survo": lambda gold, _: gold.replace(" ", "  "),
    "time_intervals": lambda gold, _: gold.removeprefix("0"),
    "tower_of_hanoi": lambda gold, _: gold.replace("\n", "\n\n"),
    "word_ladder": lambda gold, _: gold.lower().replace(",", ", "),
    "word_sorting": lambda gold, _: gold.replace(", ", ","),
}
"""The same answer in another notation, or another right one, where the scorer of the package takes it."""

PARTS = ("gsm_symbolic", "coin_flip", "knights_knaves")
CONFIGS: dict[str, dict[str, Any]] = {
    "composite": {"datasets": [DatasetSpec(name, 1, {}) for name in PARTS]},
    "rush_hour": {"max_moves": 3},
}


def is_same_answer(answer: str, gold: str) -> bool:
    """Whether an answer is the reference but for spaces, case, quotes, brackets, its name or its unit."""
    ours, theirs = (
        "".join(text.split()).casefold().strip("\"'[]()") for text in (strip_name_and_unit(answer, gold), gold)
    )
    ours = re.sub(r"\+c\d$", "+c", ours)  # a constant of integration may have a number
    return ours == theirs or (read_rational(ours) is not None and read_rational(ours) == read_rational(theirs))


def generate_wrong_answers(entries: list[dict[str, Any]]) -> Iterator[CandidateAnswer]:
    """Yield what no question of a data set should be answered with."""
    for place, entry in enumerate(entries):
        gold = entry["solution"]
        others = [each["solution"] for each in entries[place + 1 :] + entries[:place]]
        alike = [
            each
            for each in others
            if not is_same_answer(each, gold) and (read_rational(each) is None) == (read_rational(gold) is None)
        ]
        other = (alike or ["7"])[0]
        yield from (
            CandidateAnswer("constant", answer, entry) for answer in CONSTANTS if not is_same_answer(answer, gold)
        )
        for kind, templates in TEMPLATES.items():
            answers = (template.format(gold=gold, other=other) for template in templates)
            yield from (CandidateAnswer(kind, answer, entry) for answer in answers if not is_same_answer(answer, gold))


def judge_data_set(name: str, questions: int = QUESTIONS) -> tuple[dict[str, Any], list[tuple[CandidateAnswer, bool]]]:
    """Return the counts of a data set, and each wrong answer that the scorer, or we (True), call right."""
    task = ReasoningGym(name, CONFIGS.get(name), train_size=questions, validation_size=4, prompts_per_step=1)
    task.setup()
    entries = [{**each._asdict(), "solution": find_right_answer(name, each)} for each in task.train_set]
    entries = [entry for entry in entries if entry["solution"]]
    right = [CandidateAnswer("reference", entry["solution"], entry) for entry in entries]
    if name in OTHERS:
        right += [
            CandidateAnswer("other", OTHERS[name](entry["solution"], entry["metadata"]), entry) for entry in entries
        ]
    cases = right + list(generate_wrong_answers(entries))
    examples = [Example(case.entry["question"], case.entry["answer"], case.entry["metadata"]) for case in cases]
    verdicts = task.judge([f"<answer>{case.answer}</answer>" for case in cases], examples)
    here = [verdict is Verdict.RIGHT for verdict in verdicts]
    scorer = [is_right_for_scorer(task.source, case) for case in cases]

    def count(kind: str, flags: list[bool]) -> int:
        return sum(flag for case, flag in zip(cases, flags, strict=True) if case.kind == kind)

    ones = [True] * len(cases)
    row: dict[str, Any] = {"name": name, "questions": len(task.train_set), "wrong_asked": len(cases) - len(right)}
    row |= {"references": count("reference", ones), "references_right": count("reference", here)}
    row |= {"others": count("other", scorer), "others_right": count("other", here)}
    row |= {f"{kind}_scorer": count(kind, scorer) for kind in KINDS} | {kind: count(kind, here) for kind in KINDS}
    row["unjudged"] = sum(verdict is Verdict.UNJUDGED for verdict in verdicts)
    accepted = [(case, ours) for case, ours, theirs in zip(cases, here, scorer, strict=True) if ours or theirs]
    return row, [(case, ours) for case, ours in accepted if case.kind in KINDS]


def find_right_answer(name: str, example: Example) -> str | None:
    """Return a right answer to a question; None if the data set has none to show."""
    if name in SOLUTIONS:
        return SOLUTIONS[name](example.metadata)
    return None if example.answer == "None" else example.answer


def is_right_for_scorer(source: Any, case: CandidateAnswer) -> bool:
    """Whether the scorer of the package calls an answer right; what it raises on is wrong."""
    try:
        return bool(source.score_answer(case.answer, case.entry) >= 1.0)
    except Exception:  # noqa: BLE001  (over a hundred scorers by other hands)
        return False


def render_battery_table(rows: list[dict[str, str]]) -> str:
    """Return the data sets whose scorers take a wrong answer, by kind: what the scorer takes, and what we do."""
    lines = [
        [f"`{row['name']}`", row["wrong_asked"], *(f"{row[f'{kind}_scorer']} / {row[kind]}" for kind in KINDS)]
        for row in rows
        if any(int(row[f"{kind}_scorer"]) or int(row[kind]) for kind in KINDS)
    ]
    return Table(["data set", "asked", *KINDS], lines).to_markdown()


def main() -> None:
    """Ask what is named, or every data set, and write the table after each."""
    from reasoning_gym.factory import DATASETS  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=RESULTS / "reasoning_gym_battery.csv")
    args = parser.parse_args()
    known: dict[str, dict[str, Any]] = {}
    if args.out.exists():
        known = {row["name"]: dict(row) for row in read_csv_rows(args.out)}
    for name in args.names or sorted(DATASETS):
        known[name], accepted = judge_data_set(name, FEWER.get(name, QUESTIONS))
        write_csv_rows(args.out, [dict.fromkeys(COLUMNS, "") | known[each] for each in sorted(known)])
        print(known[name], file=sys.stderr, flush=True)
        for case, ours in accepted:
            print(f"  {'RIGHT' if ours else 'scorer'} {case.kind}: {case.answer!r:.200}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
