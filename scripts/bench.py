"""Time, memory and launches of a step, by shape of the model, on this machine: ours and TRL's in turn.

python scripts/bench.py --shapes smollm2_135m qwen3_4b --max_tokens 512 --out bench.json
python scripts/bench.py --shapes llama_70m --prompts 2 --completions 4 --max_tokens 16 --steps 1   # on a CPU

Weights are random, in bfloat16, and have the sizes of the named models; a LoRA of rank 64 is on all linear layers.
Hardly a completion ends before ``--max_tokens``, and half of them are right, by a hash of the text. A process measures
one side of one shape, alone on the card: it starts when the one before has ended and its memory is free. Every round
turns the order of the sides. The first step of both sides is not counted; ours has completions of 32 tokens.

``of limit`` is what the work takes at least, over what it took. A rollout reads all weights for every token, and the
keys and values before it; an update multiplies every token of prompts and completions with every weight once forwards
and once backwards. Both are divided by what this machine reads and multiplies in a large copy and a large product.
TRL's update is its step without its sampling. Launches are those of one more update of ours; on a CPU, operations that
are no views.

"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from benchmarks import (
    find_least_time,
    format_median_and_range,
    make_benchmark_parser,
    measure_peak_rate,
    print_columns,
    take_peak_bytes,
    write_measurements,
)
from launch_counts import make_launch_counter, read_launches
from lightning.pytorch import Callback, Trainer
from model_shapes import MODEL_SHAPES, PUBLISHED_SHAPES, make_random_model
from short_runs import StepMetricsRecorder, train_unlogged
from tiny_traces import CHAIN_SUM
from torch import Tensor

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.architecture import parse_architecture
from rlcredit.policy.model_loading import find_fastest_device, load_tokenizer
from rlcredit.policy.policy import LoRA, Policy, add_lora_adapter
from rlcredit.preflight.time import find_least_seconds
from rlcredit.tasks import Example, ReasoningGym
from rlcredit.training.module import PolicyModule
from rlcredit.training.step_state import read_clock
from rlcredit.verification.verifiers import Verdict

MICRO_BATCH_TOKENS = {"qwen3_0.6b": 12_288, "qwen3_4b": 5_120, "qwen3_8b": 4_096}
"""Tokens of an update that TRL computes at a time, as 80 GB hold them; ours chooses for itself."""

OTHER_TOKENS = 24_576
"""Tokens that are computed at a time with any other shape."""

PROMPT_TOKENS = 96
"""Tokens to which prompts are padded."""

_LORA_RANK = 64
_TEMPERATURE = 0.7
_LEARNING_RATE = 5e-5
WARM_UP_TOKENS = 32
"""Tokens of a completion in the step before those that are measured."""
FREE_SHARE = 0.95
"""Share of the card's memory that is free where nothing else runs on it."""
INSTRUCTION_TEMPLATE = (
    "A number is asked for, and the way to it is to be written down step by step before it. {question}"
)


class RandomPolicy(Policy):
    """A policy of a shape with random weights and the tokenizer of the embedded one.

    Args:
        shape: One of :data:`~model_shapes.MODEL_SHAPES`.
        **others: Sizes that replace those of the shape.

    """

    def __init__(self, shape: str, **others: Any) -> None:
        super().__init__(lora=LoRA(_LORA_RANK, 2 * _LORA_RANK), dtype="bfloat16")
        self.shape = shape
        self.others = others

    def load(self, seed: int = 0) -> None:
        """Draw the weights; a second call does nothing."""
        if self.lm is not None:
            return
        self.tokenizer = load_tokenizer(self.location)
        torch.backends.cuda.enable_cudnn_sdp(False)  # as `load_frozen_model` does
        self.lm = add_lora_adapter(make_random_model(self.shape, find_fastest_device(), **self.others), self.lora)

    def decode_pieces(self, completion_ids: Tensor, mask: Tensor) -> list[list[str]]:
        """Decode tokens that the tokenizer knows in place of those that it does not: there would be nothing to do."""
        return super().decode_pieces(completion_ids % len(self.tokenizer), mask)


class HashedVerdicts(ReasoningGym):
    """Questions whose answers are right by a hash of the text, half of them."""

    def judge(self, completions: Sequence[str], examples: Sequence[Example]) -> list[Verdict]:
        """Return a verdict on each completion."""
        return [Verdict.RIGHT if zlib.crc32(text.encode()) & 1 else Verdict.WRONG for text in completions]


class StepCosts(Callback):
    """Keep the peak memory of rollouts and updates in bytes, zero without an accelerator; count launches of an update.

    Args:
        counted_step: Number of the update whose launches are counted.

    """

    def __init__(self, counted_step: int) -> None:
        self.peaks: dict[str, list[int]] = {"rollout": [], "update": []}
        self.counted_step = counted_step
        self.counter = make_launch_counter()

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Take the peak of the rollout; credit has been assigned."""
        self.peaks["rollout"].append(take_peak_bytes())
        if batch_idx == self.counted_step:
            self.counter.__enter__()

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Take the peak of the update."""
        self.peaks["update"].append(take_peak_bytes())
        if batch_idx == self.counted_step:
            self.counter.__exit__(None, None, None)


def measure_machine(_: argparse.Namespace) -> dict[str, float]:
    """Return the operations a second of a large product in bfloat16, and the bytes a second of a large copy."""
    device = find_fastest_device()
    cuda = torch.cuda.is_available()
    large = torch.randn(2**28 if cuda else 2**22, device=device)
    target = torch.empty_like(large)
    copy_seconds = find_least_time(lambda: target.copy_(large), device)
    operations = measure_peak_rate(8192 if cuda else 1024, device, torch.bfloat16)
    return {"operations": operations, "bytes": 2 * large.nbytes / copy_seconds}


def make_task(prompts: int) -> ReasoningGym:
    """Return the questions of both sides."""
    return HashedVerdicts(
        "chain_sum", CHAIN_SUM, prompts_per_step=prompts, validation_size=16, instruction=INSTRUCTION_TEMPLATE
    )


def choose_row_count(tokens: int, row_tokens: int, rows: int) -> int:
    """Return the number of completions computed at a time: the largest divisor of all that fits, or one.

    Example:
        >>> choose_row_count(24_576, row_tokens=1_120, rows=256)
        16

    """
    return max(part for part in range(1, rows + 1) if rows % part == 0 and (part == 1 or part * row_tokens <= tokens))


def find_row_count(args: argparse.Namespace) -> int:
    """Return the number of completions that TRL computes at a time."""
    tokens = args.micro_batch_tokens or MICRO_BATCH_TOKENS.get(args.side_shape, OTHER_TOKENS)
    return choose_row_count(tokens, PROMPT_TOKENS + args.max_tokens, args.prompts * args.completions)


def measure_own_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Train a shape for some steps; return time and memory of all but the first, and the launches of one more."""
    module = PolicyModule(
        policy=RandomPolicy(args.side_shape),
        sampling=Sampling(args.completions, min(WARM_UP_TOKENS, args.max_tokens), _TEMPERATURE),
        engine=InProcessEngine(args.decode_batch_size),
        optimizer=partial(torch.optim.AdamW, lr=_LEARNING_RATE, weight_decay=0.0),
        micro_batch_tokens=args.micro_batch_tokens or "auto",
        sampler_tolerance=float("inf"),  # random weights round far more than trained ones
    )
    recorder, costs = StepMetricsRecorder(), StepCosts(counted_step=args.steps + 1)

    def lengthen_completions() -> None:
        if module.global_step:
            module.sampling.max_tokens = args.max_tokens

    module.between_steps.append(lengthen_completions)
    train_unlogged(
        module,
        make_task(args.prompts),
        args.steps + 2,
        [GRPO(), costs, recorder],
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=1,
        precision="bf16-mixed",
    )
    steps = recorder.steps[1:-1]
    parts = ("rollout", "verify", "credit", "update")
    return {
        "seconds": {part: [step[f"time/{part}"] for step in steps] for part in parts},
        "tokens": args.prompts * args.completions * statistics.mean(step["train/completion_length"] for step in steps),
        "bytes": {part: max(peaks[1:-1]) for part, peaks in costs.peaks.items()},
        "launches": read_launches(costs.counter),
        "ratio_rms": [step.get("train/ratio_rms") for step in steps],
    }


def measure_trl_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Train a shape with TRL's GRPOTrainer for some steps; return time and memory of all but the first."""
    from bench_trl import time_trl_steps  # noqa: PLC0415

    part, device = find_row_count(args), find_fastest_device()
    steps = time_trl_steps(
        args.steps + 1,
        partial(read_clock, device),
        model=make_random_model(args.side_shape, device),
        task=make_task(args.prompts),
        lora=LoRA(_LORA_RANK, 2 * _LORA_RANK),
        tokenizer=load_tokenizer(Policy().location),
        per_device_train_batch_size=part,
        gradient_accumulation_steps=args.prompts * args.completions // part,
        num_generations=args.completions,
        max_completion_length=args.max_tokens,
        temperature=_TEMPERATURE,
        learning_rate=_LEARNING_RATE,
        use_cpu=device.type == "cpu",
        bf16=True,
    )
    return {
        "seconds": {"update": steps.updates[1:], "step": steps.list_seconds()[1:]},
        "tokens": args.prompts * args.completions * statistics.mean(steps.lengths[1:]),
        "at_a_time": part,
        "bytes": {"update": steps.update_bytes},
    }


SIDE_MEASUREMENTS = {"machine": measure_machine, "ours": measure_own_steps, "trl": measure_trl_steps}
"""What a process measures."""


def run_side(side: str, shape: str, settings: Sequence[str], limit: float) -> dict[str, Any]:
    """Measure one side of one shape in a process of its own; return its measurement, or why there is none.

    Args:
        side: One of :data:`SIDE_MEASUREMENTS`.
        shape: One of :data:`~model_shapes.MODEL_SHAPES`.
        settings: Settings of the measurement, as they are typed.
        limit: Seconds after which the process is killed.

    """
    command = [sys.executable, __file__, "--side", side, "--side_shape", shape, *settings]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        # Its input stays open as long as it may measure, so that it ends with this process.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors, text=True) as process:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                return {"failed": f"killed after {limit:.0f} s"}
        output.seek(0)
        errors.seek(0)
        lines = [line for line in output if line.startswith("{")]
        if process.returncode < 0:
            return {"failed": f"killed by signal {-process.returncode}"}
        if process.returncode or not lines:
            return {"failed": (errors.read().strip().splitlines() or ["it said nothing"])[-1][:300]}
    return json.loads(lines[-1])


def measure_side(args: argparse.Namespace) -> None:
    """Print one measurement as a line of JSON, alone on the card; end with the process that waits for it."""

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    silence_libraries()
    torch.set_num_threads(args.threads)
    if torch.cuda.is_available():
        wait_for_free_card(limit=60)
    print(json.dumps(SIDE_MEASUREMENTS[args.side](args)), flush=True)


def wait_for_free_card(limit: float) -> None:
    """Wait until the memory of the process before is free.

    Args:
        limit: Seconds to wait at most.

    Raises:
        RuntimeError: other processes hold memory of the card.

    """
    end = time.perf_counter() + limit
    while True:
        free, total = torch.cuda.mem_get_info()
        if free >= FREE_SHARE * total:
            return
        if time.perf_counter() > end:
            raise RuntimeError(
                f"Other processes hold {(total - free) / 2**30:.1f} of the card's {total / 2**30:.1f} GiB. End them: "
                "what is measured runs alone."
            )
        time.sleep(0.5)


ROW_COLUMNS = (
    *("shape", "rollout s", "rollout of limit", "verify s", "update s", "update of limit", "us a token"),
    *("TRL us a token", "of TRL", "GiB rollout", "GiB update", "TRL GiB update", "launches", "failed"),
)


def tabulate_shape(shape: str, rounds: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, str]:
    """Return a row of the table.

    Args:
        shape: Name of the shape.
        rounds: Measurements of each side, round by round, or the reason why there is none.

    """
    row: dict[str, str] = dict.fromkeys(ROW_COLUMNS, "") | {"shape": shape}
    for side, measurements in rounds.items():
        results = [result for result in measurements if "failed" not in result]
        prefix = "TRL " if side == "trl" else ""
        for part in results[0]["seconds"] if results else ():
            seconds = [second for result in results for second in result["seconds"][part]]
            row[f"{prefix}{part} s"] = format_median_and_range(seconds, 2)
            row[f"{prefix}GiB {part}"] = f"{max(result['bytes'].get(part, 0) for result in results) / 2**30:.1f}"
            if part in results[0].get("least", ()):
                row[f"{prefix}{part} of limit"] = f"{results[0]['least'][part] / statistics.median(seconds):.0%}"
        if results:
            row[f"{prefix}us a token"] = format_median_and_range(list(map(find_token_cost, results)), 1)
            row["launches"] = row["launches"] or str(results[-1].get("launches", ""))
        row["failed"] += "".join(f"{side} {result['failed']}. " for result in measurements if "failed" in result)
    pairs = zip(*rounds.values(), strict=True) if len(rounds) == 2 else ()
    ratios = [
        find_token_cost(ours) / find_token_cost(theirs) for ours, theirs in pairs if "failed" not in ours | theirs
    ]
    row["of TRL"] = format_median_and_range(ratios, 2) if ratios else ""
    return {name: row[name] for name in ROW_COLUMNS}


def find_token_cost(measurement: Mapping[str, Any]) -> float:
    """Return the microseconds of an update for each sampled token."""
    return 1e6 * statistics.median(measurement["seconds"]["update"]) / measurement["tokens"]


def measure_shapes(args: argparse.Namespace) -> None:
    """Measure every shape, both sides in turn, and print a row of the table for each."""
    names = ("steps", "prompts", "completions", "max_tokens", "micro_batch_tokens", "decode_batch_size", "threads")
    settings = [f"--{name}={value}" for name, value in vars(args).items() if name in names and value is not None]
    machine = run_side("machine", args.shapes[0], settings, args.side_limit)
    shapes: dict[str, dict[str, list[dict[str, Any]]]] = {}
    rows = args.prompts * args.completions
    for shape in args.shapes:
        architecture = parse_architecture(MODEL_SHAPES[shape])
        assert architecture is not None
        rounds = shapes[shape] = {side: [] for side in ("ours", "trl") if side in args.sides}
        for number in range(args.rounds):
            for side in rounds if number % 2 == 0 else reversed(rounds):
                measurement = run_side(side, shape, settings, args.side_limit)
                if not {"failed"} & {*machine, *measurement}:
                    measurement["least"] = find_least_seconds(
                        architecture, machine, args.prompts, PROMPT_TOKENS, rows, measurement["tokens"] / rows
                    )
                rounds[side].append(measurement)
                write_measurements(args.out, limits=machine, shapes=shapes, settings=settings)
        print_columns([tabulate_shape(shape, rounds)])


def main() -> None:
    """Measure every shape and print a row of the table for each; all values are written as they come."""
    parser = make_benchmark_parser(__doc__)
    parser.set_defaults(rounds=2)
    parser.add_argument("--shapes", nargs="+", choices=MODEL_SHAPES, default=list(PUBLISHED_SHAPES))
    parser.add_argument("--sides", nargs="+", choices=("ours", "trl"), default=["ours", "trl"])
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--completions", type=int, default=16)
    parser.add_argument("--max_tokens", type=int, default=1024)
    parser.add_argument("--micro_batch_tokens", type=int, default=None)
    parser.add_argument("--decode_batch_size", type=int, default=None)
    parser.add_argument("--side_limit", type=float, default=900, help="seconds after which a process is killed")
    parser.add_argument("--side", choices=SIDE_MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--side_shape", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        measure_side(args)
    else:
        measure_shapes(args)


if __name__ == "__main__":
    main()
