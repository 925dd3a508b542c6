"""What the signals of token credit are: their variance, order, pooling, and what they find, before any training.

python -m studies.credit_patterns.measure_signals --out studies/credit_patterns/results/signals.csv
python -m studies.credit_patterns.measure_signals --policies aligned --prompts 32 --asked 16    # quicker, printed only

For each test policy one batch is sampled. Quantities over tokens have jackknife intervals over prompts, quantities from
true credit over the completions asked about, and gradients over batches of prompts. Where a planning mask is needed,
only the policies that say planning phrases are measured.

"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from lightning.pytorch import seed_everything
from short_runs import train_unlogged

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import PLANNING_PHRASES
from rlcredit.cards.card_policies import resolve_card_policy
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.formulas.spans import phrase_plan_mask
from rlcredit.oracle import Oracle
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.tables import Table
from rlcredit.tasks import Task
from rlcredit.training.module import PolicyModule
from studies import csv_rows
from studies.credit_patterns.signal_quantities import (
    Row,
    measure_order,
    measure_pivots,
    measure_pooled_credit,
    measure_pooling,
    measure_variance_split,
)
from studies.credit_patterns.worse_masks import STACKS
from studies.measured_credit.measure_noise import BatchGradients, compare_with_grpo, make_configured_run

SPEAKING = ("aligned", "aligned_1", "long_chains")
"""Policies that say the phrases of planning."""

POLICIES = (*SPEAKING, "decoy", "delayed", "backward")


class TruthRecorder(CreditOperator, reads="advantages correct entropy judged old_logprobs oracle tokens", costly=True):
    """Keep the rollout, the credit of every stack, and the true credit of some completions.

    Args:
        asked: Completions whose true credit is measured, taken evenly from the batch.
        samples: Continuations per prefix.

    """

    def __init__(self, asked: int, samples: int) -> None:
        super().__init__()
        self.asked, self.samples = asked, samples

    def assign(self, rollout: Rollout) -> Metrics:
        """Measure; nothing is logged."""
        self.ledgers = {name: CreditStack(STACKS[name]()).assign(rollout).advantages for name in STACKS}
        assert isinstance(rollout.oracle, Oracle)
        rows = rollout.evenly_spaced_rows(self.asked)
        self.truth = rollout.oracle.with_fresh_noise().credit(rollout, rows, self.samples)
        self.rollout = rollout
        return {}


def measure_masks(gradients: BatchGradients) -> Iterator[Row]:
    """Yield agreement and direction of the stacks, against flat credit and against SEPA with the true mask."""
    vectors = {name: torch.stack(each).double().numpy() for name, each in gradients.kept.items()}
    for name in vectors:
        agreement, _, direction = compare_with_grpo(vectors[name], vectors["GRPO"])
        _, beyond, turned = compare_with_grpo(vectors[name], vectors["SEPA"])
        found = {
            "agreement": agreement,
            "direction": direction,
            "agreement_beyond_SEPA": beyond,
            "direction_to_SEPA": turned,
        }
        for quantity, (estimate, low, high) in found.items():
            yield {"subject": name, "quantity": quantity, "estimate": estimate, "low": low, "high": high}


def make_policy_run(name: str, prompts: int, seed: int = 0) -> tuple[PolicyModule, Task]:
    """Return a test policy that samples 8 completions per prompt and does not learn, and its task."""
    seed_everything(seed, verbose=False)
    config = resolve_card_policy(name).files
    named = {"config": config, "prompts": prompts, "completions": 8, "seed": seed, "threads": 1}
    return make_configured_run(argparse.Namespace(**named))


def measure_policy(name: str, args: argparse.Namespace) -> list[Row]:
    """Return everything that is measured of one policy."""
    module, task = make_policy_run(name, args.prompts)
    recorder = TruthRecorder(args.asked, args.samples)
    gradients, speaks = BatchGradients({stack: make() for stack, make in STACKS.items()}, 4), name in SPEAKING
    train_unlogged(module, task, 1, [GRPO(), recorder, *([gradients] if speaks else [])])
    rollout, truth = recorder.rollout, recorder.truth
    parts: list[tuple[str, Iterator[Row]]] = [
        ("variance", ({"tokens": "all", **row} for row in measure_variance_split(rollout, rollout.mask))),
        ("order", measure_order(rollout)),
        ("pivots", measure_pivots(rollout, truth)),
    ]
    if speaks:
        plan_mask = phrase_plan_mask(rollout.tokens, PLANNING_PHRASES, rollout.turn)
        execution = measure_variance_split(rollout, rollout.mask & ~plan_mask)
        parts += [
            ("variance", ({"tokens": "execution", **row} for row in execution)),
            ("pooling", measure_pooling(rollout, plan_mask)),
            ("pooled credit", measure_pooled_credit(truth, recorder.ledgers, plan_mask)),
            ("masks", measure_masks(gradients)),
        ]
    return [write_row(name, part, row) for part, rows in parts for row in rows]


def write_row(policy: str, part: str, row: Row) -> Row:
    """Return a row of the CSV file, its numbers with six digits."""
    numbers = {key: f"{row[key]:.6g}" for key in ("estimate", "low", "high")}
    words = {key: row.get(key, "") for key in ("tokens", "subject", "quantity")}
    return {"policy": policy, "part": part, **words, **numbers}


def format_value(row: Row) -> str:
    """Return an estimate with its interval."""
    return format_with_interval(float(row["estimate"]), float(row["low"]), float(row["high"]), ".3f")


def main() -> None:
    """Measure, print one row per quantity, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=POLICIES, help=f"of {', '.join(POLICIES)}")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--asked", type=int, default=64, help="completions whose true credit is measured")
    parser.add_argument("--samples", type=int, default=64, help="continuations per prefix")
    parser.add_argument("--out", type=Path, default=None, help="CSV file to be written")
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(1)
    heads = ("policy", "part", "tokens", "subject", "quantity")
    rows: list[Row] = []
    for name in args.policies:
        rows += measure_policy(name, args)
        if args.out is not None:
            csv_rows.write_csv_rows(args.out, rows)
    cells = [[*(row[head] for head in heads), format_value(row)] for row in rows]
    print(Table([*heads, "value"], cells).to_markdown())


if __name__ == "__main__":
    main()
