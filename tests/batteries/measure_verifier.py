"""Measure the mathematics verifier on rewritten golds of any question files, with math-verify alone beside it.

    python tests/batteries/measure_verifier.py math500.jsonl gsm8k_test.jsonl --out counts.csv

Every gold answer of a file is rewritten: into completions that answer the same, which must be right, and into others
that do not, of which none may be. A row of the output counts one rewrite on one file; no text of the file is in it.
"""

import argparse
import csv
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import math_verify
from tabulate_verifier import render_verifier_table
from verifier_rewrites import DIFFERENT, EQUAL

from rlcredit.tasks.record_sources import RecordSource
from rlcredit.tasks.record_values import has_column, read_answer_text, read_column
from rlcredit.verification.answer_formats import AnswerFormat, find_final_answer
from rlcredit.verification.verifiers import MathVerifier, Verdict

KINDS = {"equal": EQUAL, "different": DIFFERENT}
COLUMNS = ("answer", "final_answer", "ground_truth", "Answer", "target", "correct", "solution")
"""Where golds are looked for, in this order."""

BATCH = 400
"""Completions that the verifier is asked at a time."""

SECONDS = 3
"""That math-verify may take to read, and to compare."""


class RewrittenGold(NamedTuple):
    """One rewrite of one gold."""

    kind: str
    rewrite: str
    gold: str
    completion: str


def read_golds(path: Path, column: str | None, form: AnswerFormat | None) -> list[str]:
    """Return the distinct golds of a file; lists of several alternatives are left out.

    Args:
        path: Path of the file.
        column: Column of the answers; the first of :data:`COLUMNS` that a record has if None.
        form: Format in which a worked solution states its answer. If None, ``####`` and, in a column of solutions, a
            box are found, and all else is the answer itself.

    """
    golds = dict[str, None]()
    for _, record in RecordSource(str(path)).read_records():
        name = column or next(name for name in COLUMNS if has_column(record, name))
        content = read_column(record, name)
        single = content[0] if isinstance(content, list) and len(content) == 1 else content
        text = None if isinstance(single, list) else read_answer_text(single)
        gold = None if text is None else find_stated_gold(text.strip(), name, form)
        if gold:
            golds[gold] = None
    return list(golds)


def find_stated_gold(text: str, column: str, form: AnswerFormat | None) -> str | None:
    """Return the answer that a column states."""
    if form is None and "####" not in text and column != "solution":
        return text
    return find_final_answer(text, (form,) if form else ("hashes", "boxed"))


def rewrite_golds(golds: Sequence[str], per_rewrite: int, seed: int) -> list[RewrittenGold]:
    """Return every rewrite of as many golds as it applies to, at most so many of each.

    Args:
        golds: Golds, all different.
        per_rewrite: Most cases per rewrite.
        seed: Seed of their choice.

    """
    cases = []
    for kind, rewrites in KINDS.items():
        for name, rewrite in rewrites.items():
            drawn = random.Random(f"{seed} {name}").sample(golds, len(golds))
            written = ((gold, rewrite(gold)) for gold in drawn)
            found = [RewrittenGold(kind, name, gold, text) for gold, text in written if text is not None]
            cases += found[:per_rewrite]
    return cases


def judge_rewritten_golds(cases: Sequence[RewrittenGold]) -> list[Verdict]:
    """Return the verdicts of the project's verifier; its budget is no matter of a measurement."""
    verifier, verdicts = MathVerifier(budget=1e9), list[Verdict]()
    for begun in range(0, len(cases), BATCH):
        batch = cases[begun : begun + BATCH]
        verdicts += verifier.judge([case.completion for case in batch], [case.gold for case in batch])
    return verdicts


def is_right_for_math_verify(case: RewrittenGold) -> bool:
    """Whether math-verify alone finds a completion right, used as its page says; what raises is not right."""
    try:
        gold = math_verify.parse(case.gold if "$" in case.gold else f"${case.gold}$", parsing_timeout=SECONDS)
        answer = math_verify.parse(case.completion, parsing_timeout=SECONDS)
        return bool(math_verify.verify(gold, answer, timeout_seconds=SECONDS))
    except Exception:  # noqa: BLE001  (counted as not right, whatever it is)
        return False


def count_verdicts(
    file: str, cases: Sequence[RewrittenGold], verdicts: Sequence[Verdict], alone: Sequence[bool]
) -> Iterator[dict[str, Any]]:
    """Yield a row of counts for each rewrite of a file."""
    for kind, rewrites in KINDS.items():
        for name in rewrites:
            places = [place for place, case in enumerate(cases) if (case.kind, case.rewrite) == (kind, name)]
            if places:
                ours = [verdicts[place] for place in places]
                yield {
                    "file": file,
                    "kind": kind,
                    "rewrite": name,
                    "cases": len(places),
                    **{verdict.name.lower(): ours.count(verdict) for verdict in Verdict},
                    "math_verify_right": sum(alone[place] for place in places),
                }


def group_misjudged_golds(
    cases: Sequence[RewrittenGold], verdicts: Sequence[Verdict]
) -> dict[tuple[str, str], list[tuple[RewrittenGold, Verdict]]]:
    """Return the cases judged otherwise than they should be, by kind and rewrite."""
    found = dict[tuple[str, str], list[tuple[RewrittenGold, Verdict]]]()
    for case, verdict in zip(cases, verdicts, strict=True):
        if (verdict is Verdict.RIGHT) != (case.kind == "equal"):
            found.setdefault((case.kind, case.rewrite), []).append((case, verdict))
    return found


def write_counts(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of counts to a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Rewrite, judge, count and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help=".jsonl, .json, .csv, .tsv or .parquet")
    parser.add_argument("--column", help=f"of the answers; the first of {', '.join(COLUMNS)} if not given")
    parser.add_argument("--format", help="in which a worked solution states its answer; boxed or hashes, for example")
    parser.add_argument("--per-rewrite", type=int, default=50, help="golds that a rewrite is tried on, per file")
    parser.add_argument("--only", default="", help="part of the names of the rewrites that are tried")
    parser.add_argument("--seed", type=int, default=0, help="seed for the choice of golds")
    parser.add_argument("--show", type=int, default=0, help="failing cases of each rewrite that are printed")
    parser.add_argument("--no-library", action="store_true", help="leave math-verify alone out")
    parser.add_argument("--out", type=Path, help="CSV file, a row per file and rewrite")
    args = parser.parse_args()
    rows = list[dict[str, Any]]()
    for path in args.files:
        golds = read_golds(path, args.column, args.format)
        cases = [case for case in rewrite_golds(golds, args.per_rewrite, args.seed) if args.only in case.rewrite]
        print(f"{path.name}: {len(golds)} golds, {len(cases)} cases", file=sys.stderr, flush=True)
        verdicts = judge_rewritten_golds(cases)
        alone = [not args.no_library and is_right_for_math_verify(case) for case in cases]
        rows += count_verdicts(path.name, cases, verdicts, alone)
        if args.out:
            write_counts(args.out, rows)  # after every file, for a run may take long
        for (kind, name), missed in group_misjudged_golds(cases, verdicts).items() if args.show else ():
            print(f"\n{path.name}: {kind}: {name}: {len(missed)}")
            for case, verdict in missed[: args.show]:
                print(f"    {case.gold!r} <- {case.completion!r}: {verdict.value}")
    print(render_verifier_table([{name: str(cell) for name, cell in row.items()} for row in rows]))


if __name__ == "__main__":
    main()
