"""Time and memory of a step, by shape of the model, on this machine: rollout, update, and TRL beside them.

python scripts/bench.py --shapes smollm2_135m qwen3_0.6b qwen3_4b qwen3_8b
python scripts/bench.py --shapes smollm2_135m --prompts 2 --completions 4 --max_tokens 16 --steps 1   # on a CPU

Weights are random, in bfloat16, and have the sizes of the named models; a LoRA of rank 64 is on all linear layers.
Hardly a completion ends before ``--max_tokens``, and half of them are right, by a hash of the text. Every shape and
side runs in a process of its own. Ours warms up with completions of 32 tokens; TRL's first step counts.

``of limit`` is what the work takes at least, over what it took. A rollout reads all weights for every token, and the
keys and values before it; an update multiplies every token of prompts and completions with every weight once forwards
and once backwards. Both are divided by what this machine reads and multiplies in a large copy and a large product.

"""

import argparse
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from bench_step import StepMetricsRecorder, find_least_time, measure_peak_rate
from benchmarks import format_median_and_range, make_benchmark_parser, print_columns, write_measurements
from lightning.pytorch import Callback, Trainer
from model_shapes import PUBLISHED_SHAPES, make_random_model
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM

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
from rlcredit.verification.verifiers import Verdict

MICRO_BATCH_SIZES = {"smollm2_135m": 16, "qwen3_0.6b": 16, "qwen3_4b": 4, "qwen3_8b": 4}
"""Completions of an update that are computed at a time, as 80 GB hold them."""

_LORA_RANK = 64
_TEMPERATURE = 0.7
_LEARNING_RATE = 5e-5
WARM_UP_TOKENS = 32
"""Tokens of a completion in the step before those that are measured."""
INSTRUCTION_TEMPLATE = (
    "A number is asked for, and the way to it is to be written down step by step before it. {question}"
)


class RandomPolicy(Policy):
    """A policy of a shape with random weights and the tokenizer of the embedded one.

    Args:
        shape: One of :data:`~model_shapes.PUBLISHED_SHAPES`.

    """

    def __init__(self, shape: str) -> None:
        super().__init__(lora=LoRA(_LORA_RANK, 2 * _LORA_RANK), dtype="bfloat16")
        self.shape = shape

    def load(self, seed: int = 0) -> None:
        """Draw the weights; a second call does nothing."""
        if self.lm is not None:
            return
        self.tokenizer = load_tokenizer(self.location)
        torch.backends.cuda.enable_cudnn_sdp(False)  # as `load_frozen_model` does
        self.lm = add_lora_adapter(make_random_model(self.shape, find_fastest_device()), self.lora)


class HashedVerdicts(ReasoningGym):
    """Questions whose answers are right by a hash of the text, half of them."""

    def judge(self, completions: Sequence[str], examples: Sequence[Example]) -> list[Verdict]:
        """Return a verdict on each completion."""
        return [Verdict.RIGHT if zlib.crc32(text.encode()) & 1 else Verdict.WRONG for text in completions]


class PeakMemory(Callback):
    """Keep the peak memory of rollouts and updates, in bytes; zero where there is no accelerator."""

    def __init__(self) -> None:
        self.rollout: list[int] = []
        self.update: list[int] = []

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Take the peak of the rollout; credit is assigned after it."""
        self.rollout.append(take_peak_bytes())

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Take the peak of the update."""
        self.update.append(take_peak_bytes())


def take_peak_bytes() -> int:
    """Return the largest number of bytes allocated on the accelerator since the last call."""
    if not torch.cuda.is_available():
        return 0
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return peak


def measure_machine() -> dict[str, float]:
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


def measure_own_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Train a shape for some steps; return time and memory of all but the first."""
    module = PolicyModule(
        policy=RandomPolicy(args.side_shape),
        sampling=Sampling(args.completions, min(WARM_UP_TOKENS, args.max_tokens), _TEMPERATURE),
        engine=InProcessEngine(args.decode_batch_size),
        optimizer=partial(torch.optim.AdamW, lr=_LEARNING_RATE, weight_decay=0.0),
        micro_batch_size=args.micro_batch_size or MICRO_BATCH_SIZES[args.side_shape],
        sampler_tolerance=float("inf"),  # random weights round far more than trained ones
    )
    recorder = StepMetricsRecorder()
    peaks = PeakMemory()

    def lengthen_completions() -> None:
        if module.global_step:
            module.sampling.max_tokens = args.max_tokens

    module.between_steps.append(lengthen_completions)
    train_unlogged(
        module,
        make_task(args.prompts),
        args.steps + 1,
        [GRPO(), peaks, recorder],
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=1,
        precision="bf16-mixed",
    )
    steps = recorder.steps[1:]
    parts = {part: [step[f"time/{part}"] for step in steps] for part in ("rollout", "verify", "credit", "update")}
    return {
        "seconds": parts,
        "step": [sum(values) for values in zip(*parts.values(), strict=True)],
        "completion_length": statistics.mean(step["train/completion_length"] for step in steps),
        "prompt_length": len(module.policy.encode_questions([INSTRUCTION_TEMPLATE])[0]),
        "at_a_time": module.micro_batches.size,
        "bytes": {"rollout": max(peaks.rollout[1:]), "update": max(peaks.update[1:])},
        "ratio_rms": [step.get("train/ratio_rms") for step in steps],
    }


def measure_trl_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Train a shape with TRL's GRPOTrainer for some steps; return time and memory of all but the first."""
    from bench_trl import time_trl_steps  # noqa: PLC0415

    rows = args.prompts * args.completions
    part = min(rows, args.micro_batch_size or MICRO_BATCH_SIZES[args.side_shape])
    cuda = torch.cuda.is_available()
    starts = time_trl_steps(
        args.steps,
        model=make_random_model(args.side_shape, find_fastest_device()),
        task=make_task(args.prompts),
        lora=LoRA(_LORA_RANK, 2 * _LORA_RANK),
        tokenizer=load_tokenizer(Policy().location),
        per_device_train_batch_size=part,
        gradient_accumulation_steps=rows // part,
        num_generations=args.completions,
        max_completion_length=args.max_tokens,
        temperature=_TEMPERATURE,
        learning_rate=_LEARNING_RATE,
        use_cpu=not cuda,
        bf16=True,
    )
    return {
        "step": [end - start for start, end in itertools.pairwise(starts)],
        "bytes": {"step": take_peak_bytes()},
    }


SIDE_MEASUREMENTS = {"ours": measure_own_steps, "trl": measure_trl_steps}


class Side:
    """A process that measures one side of one shape once it is told to; it imports meanwhile.

    Args:
        side: One of :data:`SIDE_MEASUREMENTS`.
        shape: One of :data:`~model_shapes.PUBLISHED_SHAPES`.
        arguments: Settings of the measurement, as they are typed.

    """

    def __init__(self, side: str, shape: str, arguments: Sequence[str]) -> None:
        command = [sys.executable, __file__, "--side", side, "--side_shape", shape, *arguments]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (it lasts as long as the process)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True)

    def measure(self) -> dict[str, Any]:
        """Have it measure; return its measurement, or its last words."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        lines = [line for line in self.process.stdout if line.startswith("{")]
        if self.process.wait() or not lines:
            self.errors.seek(0)
            return {"failed": (self.errors.read().strip().splitlines() or ["it said nothing"])[-1][:300]}
        return json.loads(lines[-1])


def wait_for_turn() -> None:
    """Wait until this process is told to measure; end it with the one that tells."""
    sys.stdin.readline()

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def tabulate_side(side: str, shape: str, measurement: dict[str, Any], tokens: float) -> dict[str, str]:
    """Return a row of the table."""
    row = {"shape": shape, "side": side, "rollout s": "", "of limit": "", "update s": "", "of limit ": ""}
    if "failed" in measurement:
        return {**row, "step s": measurement["failed"][:60], "tokens/s": "", "GiB rollout": "", "GiB update": ""}
    if "seconds" in measurement:
        seconds = measurement["seconds"]
        limits = measurement["least"]
        for name, column in (("rollout", "of limit"), ("update", "of limit ")):
            row[f"{name} s"] = format_median_and_range(seconds[name], 2)
            row[column] = f"{limits[name] / statistics.median(seconds[name]):.0%}"
    peaks = measurement["bytes"]
    return {
        **row,
        "step s": format_median_and_range(measurement["step"], 2),
        "tokens/s": f"{tokens / statistics.median(measurement['step']):,.0f}",
        "GiB rollout": f"{peaks.get('rollout', 0) / 2**30:.1f}",
        "GiB update": f"{peaks.get('update', peaks.get('step', 0)) / 2**30:.1f}",
    }


def main() -> None:
    """Measure every shape and print a table; one line of JSON for each side as it is done."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=PUBLISHED_SHAPES, default=list(PUBLISHED_SHAPES))
    parser.add_argument("--sides", nargs="+", choices=SIDE_MEASUREMENTS, default=["ours"])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--completions", type=int, default=16)
    parser.add_argument("--max_tokens", type=int, default=1024)
    parser.add_argument("--micro_batch_size", type=int, default=None)
    parser.add_argument("--decode_batch_size", type=int, default=None)
    parser.add_argument("--side", choices=SIDE_MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--side_shape", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        silence_libraries()
        torch.set_num_threads(args.threads)
        wait_for_turn()
        print(json.dumps(SIDE_MEASUREMENTS[args.side](args)), flush=True)
        return
    machine = measure_machine()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    settings = [
        f"--{name}={value}"
        for name, value in vars(args).items()
        if name in ("steps", "prompts", "completions", "max_tokens", "micro_batch_size", "decode_batch_size", "threads")
        and value is not None
    ]
    processes = {(shape, side): Side(side, shape, settings) for side in args.sides for shape in args.shapes}
    measurements: dict[str, dict[str, Any]] = {}
    rows = []
    for (shape, side), process in processes.items():
        architecture = parse_architecture(PUBLISHED_SHAPES[shape])
        assert architecture is not None
        measurement = process.measure()
        completion_count = args.prompts * args.completions
        length = round(measurement.get("completion_length", args.max_tokens))
        if "seconds" in measurement:
            prompt = measurement["prompt_length"]
            measurement["least"] = find_least_seconds(
                architecture, machine, args.prompts, prompt, completion_count, length
            )
        measurements.setdefault(shape, {})[side] = measurement
        rows.append(tabulate_side(side, shape, measurement, completion_count * length))
        print_columns(rows[-1:])
        write_measurements(args.out, limits=machine, shapes=measurements, settings=settings)
    print_columns(rows)


if __name__ == "__main__":
    main()
