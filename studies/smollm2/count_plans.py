"""How many completions of a policy hold a phrase of planning, as each of the planners finds them.

python scripts/mine_grams.py evaluations/levels/answers/answers.jsonl --out grams.json
python -m studies.smollm2.count_plans evaluations/levels/answers/answers.jsonl --grams grams.json --out plans.csv

It reads the answers that ``rlcredit evaluate`` keeps, or ``studies/smollm2/find_tasks.py``.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from callbacks.planning.semantic_planner import SemanticPlanner
from callbacks.planning.strategic_grams import PLANNING_PHRASES
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.formulas.spans import Span, phrase_spans
from rlcredit.pages.tables import Table
from studies import csv_rows

Planner = Callable[[Sequence[str]], list[list[Span]]]
"""Finds the stretches of every text that plan."""


def make_semantic_planner(window: int, stride: int) -> Planner:
    """Return the semantic planner with its own thresholds."""
    planner, device = SemanticPlanner(window=window, stride=stride), torch.device("cpu")
    planner.judge.load_encoder(device)
    return lambda texts: planner.planning_spans(texts, device)


def make_phrase_planner(chosen: Sequence[str]) -> Planner:
    """Return the planner that searches for phrases."""
    return lambda texts: [phrase_spans(text, chosen) for text in texts]


def count_planning_answers(
    planner: str, finds: Planner, answers: Sequence[dict[str, object]]
) -> Iterator[dict[str, str]]:
    """Yield what a planner marks: for all answers, and for those that are right and those that are not."""
    texts = [str(answer["completion"]) for answer in answers]
    found = list(zip(texts, finds(texts), [answer["verdict"] == "right" for answer in answers], strict=True))
    for name, kept in (("all", (True, False)), ("right", (True,)), ("not right", (False,))):
        rows = [(text, spans) for text, spans, right in found if right in kept]
        marked = sum(bool(spans) for _, spans in rows)
        letters = sum(len({place for span in spans for place in range(*span)}) for _, spans in rows)
        share = letters / max(1, sum(len(text) for text, _ in rows))
        yield {
            **{"planner": planner, "answers": name, "completions": str(len(rows)), "with_a_plan": str(marked)},
            "share_of_text": f"{share:.4f}",
        }


def main() -> None:
    """Count and write a row per planner and kind of answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, help="answers.jsonl of an evaluation")
    parser.add_argument("--grams", type=Path, help="mined phrases, as scripts/mine_grams.py writes them")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(1)
    answers = [json.loads(line) for line in args.answers.read_text("utf-8").splitlines()]
    planners = {
        "18 phrases": make_phrase_planner(PLANNING_PHRASES),
        "semantic, windows of 12": make_semantic_planner(12, 6),
    }
    planners["semantic, windows of 4"] = make_semantic_planner(4, 2)
    if args.grams:
        planners["mined"] = make_phrase_planner(json.loads(args.grams.read_text("utf-8"))["grams"])
    rows = [row for name, finds in planners.items() for row in count_planning_answers(name, finds, answers)]
    csv_rows.write_csv_rows(args.out, rows)
    print(render_plan_table(rows))


def render_plan_table(rows: Sequence[dict[str, str]]) -> str:
    """Return a table in Markdown: completions in which a planner marks something, by whether they are right."""
    lines = []
    for start in range(0, len(rows), 3):
        every, *_ = kinds = rows[start : start + 3]
        cells = [f"{int(each['with_a_plan']):,} of {int(each['completions']):,}" for each in kinds]
        lines.append([every["planner"], *cells, f"{float(every['share_of_text']):.1%}"])
    return Table(["planner", "all", "right", "not right", "of the text"], lines).to_markdown()


if __name__ == "__main__":
    main()
