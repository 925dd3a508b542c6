"""Count the operations of an update that would be launches on an accelerator, by layer.

python -m studies.machinery.count_operations --name before
python -m studies.machinery.count_operations                 # the files that there are, side by side

Counted are aten operations that are no views, on the CPU under autocast to bfloat16: of a second update, with two
micro-batches of 8 completions each, so that micro-batches are computed again where they are at all. What a layer takes
is the difference between models of two layers and one, for each micro-batch; the optimizer's is for an update, and on
the CPU it takes one tensor after the other. What is outside does not grow with the layers.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from bench import INSTRUCTION_TEMPLATE, PROMPT_TOKENS, RandomPolicy
from benchmarks import print_columns
from launch_counts import OperationCounter
from lightning.pytorch import Callback
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import Example, ReasoningGym
from rlcredit.training.module import PolicyModule
from rlcredit.verification.verifiers import Verdict
from studies.csv_rows import read_csv_rows, write_csv_rows

RESULTS = Path(__file__).parent / "results"
COUNTED_SHAPES = ("smollm2_135m", "qwen3_4b")
UPDATE_PHASES = ("forward", "backward", "optimizer")
PROMPTS, COMPLETIONS, TOKENS = 2, 8, 24
"""Prompts of a step, completions of a prompt, tokens of a completion; a micro-batch holds the completions of one."""


class AlternatingVerdicts(ReasoningGym):
    """Questions of which every second answer is right, so that every completion has a gradient."""

    def judge(self, completions: Sequence[str], examples: Sequence[Example]) -> list[Verdict]:
        """Return a verdict on each completion."""
        return [Verdict.WRONG if place % 2 else Verdict.RIGHT for place in range(len(completions))]


class PhaseCounter(Callback):
    """Count the operations of each phase of the second update; the optimizer makes its state in the first."""

    def __init__(self) -> None:
        self.counters = {phase: OperationCounter() for phase in UPDATE_PHASES}

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Begin with the forward pass."""
        self.turn_over(batch_idx, None, "forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Go on with the backward pass."""
        self.turn_over(trainer.global_step, "forward", "backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """Go on with the optimizer."""
        self.turn_over(trainer.global_step, "backward", "optimizer")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Stop counting."""
        self.turn_over(batch_idx, "optimizer", None)

    def turn_over(self, update: int, ending: str | None, beginning: str | None) -> None:
        """Count for another phase from now on, in the second update only."""
        if update == 1 and ending:
            self.counters[ending].__exit__(None, None, None)
        if update == 1 and beginning:
            self.counters[beginning].__enter__()


def count_update(shape: str, layers: int) -> dict[str, Counter[str]]:
    """Return the operations of an update in each of its phases.

    Args:
        shape: One of :data:`~model_shapes.PUBLISHED_SHAPES`.
        layers: Number of layers that the model has.

    """
    module = PolicyModule(
        policy=RandomPolicy(shape, num_hidden_layers=layers),
        sampling=Sampling(COMPLETIONS, TOKENS, temperature=0.7),
        optimizer=partial(torch.optim.AdamW, lr=5e-5, weight_decay=0.0),
        micro_batch_tokens=PROMPT_TOKENS + COMPLETIONS * TOKENS,
        sampler_tolerance=float("inf"),  # random weights round far more than trained ones
    )
    task = AlternatingVerdicts(
        "chain_sum", CHAIN_SUM, prompts_per_step=PROMPTS, validation_size=8, instruction=INSTRUCTION_TEMPLATE
    )
    counter = PhaseCounter()
    train_unlogged(module, task, 2, [GRPO(), counter], precision="bf16-mixed")
    return {phase: counter.counters[phase].counts for phase in UPDATE_PHASES}


def list_rows(shape: str) -> list[dict[str, Any]]:
    """Return the counts of every operation of a shape: in a layer for each micro-batch, and outside of layers."""
    one, two = count_update(shape, 1), count_update(shape, 2)
    rows = []
    for phase in UPDATE_PHASES:
        for name in sorted(two[phase]):
            in_layer = two[phase][name] - one[phase][name]
            passes = 1 if phase == "optimizer" else PROMPTS
            rows.append({"shape": shape, "phase": phase, "operation": name})
            rows[-1] |= {"layer": f"{in_layer / passes:g}", "outside": one[phase][name] - in_layer}
    return rows


def sum_counts(name: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the operations of a file of results by shape and phase: of a layer, of what is outside of layers."""
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for row in read_csv_rows(RESULTS / f"operations_{name}.csv"):
        counts = sums.setdefault((row["shape"], row["phase"]), {"layer": 0.0, "outside": 0.0})
        for place in counts:
            counts[place] += float(row[place])
    return sums


def tabulate_counts() -> list[dict[str, str]]:
    """Return the rows of a table of all files of results, before and after."""
    names = [name for name in ("before", "after") if (RESULTS / f"operations_{name}.csv").exists()]
    sums = {name: sum_counts(name) for name in names}
    rows = []
    for shape in COUNTED_SHAPES:
        for phase in UPDATE_PHASES:
            rows.append({"shape": shape, "phase": phase})
            for name in names:
                counts = sums[name][shape, phase]
                rows[-1] |= {f"a layer, {name}": f"{counts['layer']:g}", f"outside, {name}": f"{counts['outside']:g}"}
    return rows


def main() -> None:
    """Count both shapes and write a file, or print those that there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", choices=("before", "after"), help="name of the file of results to be written")
    args = parser.parse_args()
    if args.name:
        silence_libraries()
        torch.set_num_threads(1)
        rows = [row for shape in COUNTED_SHAPES for row in list_rows(shape)]
        write_csv_rows(RESULTS / f"operations_{args.name}.csv", rows)
    print_columns(tabulate_counts())


if __name__ == "__main__":
    main()
