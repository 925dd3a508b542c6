"""Seconds per GRPO step, TRL's GRPOTrainer and ours in turn: same policy, prompts, completions, LoRA, threads.

python -m pip install -e ".[bench]"
python scripts/bench_trl.py --rounds 5 --steps 12 --threads 1
python scripts/bench_trl.py --bridge --rounds 5 --steps 6 --threads 1

Both sides have the set-up of ``configs/tiny.yaml`` and are timed from the beginning of a step to that of the next.
``--bridge`` compares TRL with its own advantages and TRL with a stack, in one process and in seconds of its CPU time,
which other work on the machine changes least; what the stack takes is timed apart.

"""

import contextlib
import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from benchmarks import (
    format_median_and_range,
    make_benchmark_parser,
    measure_in_turns,
    print_columns,
    round_ratios,
    take_peak_bytes,
    write_measurements,
)
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.tasks import Example, ReasoningGym
from rlcredit.training.module import PolicyModule
from rlcredit.verification.verifiers import Verdict

_PROMPT_COUNT = 8
_COMPLETION_COUNT = 16
_MAX_TOKENS = 128
_TEMPERATURE = 0.7
_LEARNING_RATE = 5e-4
_LORA_RANK = 16
_LORA_ALPHA = 32
_MAX_GRADIENT_NORM = 1.0


def time_own_steps(steps: int) -> list[float]:
    """Return the seconds of the steps of ours, the last one left out."""
    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=_PROMPT_COUNT, validation_size=64)
    optimizer = partial(torch.optim.AdamW, lr=_LEARNING_RATE, weight_decay=0.0)
    module = PolicyModule(
        policy=Policy(lora=LoRA(_LORA_RANK, _LORA_ALPHA)),
        sampling=Sampling(_COMPLETION_COUNT, _MAX_TOKENS, _TEMPERATURE),
        optimizer=optimizer,
    )
    starts: list[float] = []
    module.between_steps.append(lambda: starts.append(time.perf_counter()))
    train_unlogged(module, task, steps, [GRPO()], gradient_clip_val=_MAX_GRADIENT_NORM)
    return [end - start for start, end in itertools.pairwise(starts)]


BRIDGE_STACKS = {"trl": None, "flat": "sepa_paper/c1_grpo", "sepa": "sepa_paper/c8_maxrl_sepa"}
"""Sides of the comparison with a stack inside TRL: TRL's own advantages, and conditions."""


@dataclass
class TrlSteps:
    """Measurements of the steps of TRL's GRPOTrainer.

    Attributes:
        starts: Times at which steps begin, and the end of the last.
        updates: Seconds of each step without its sampling, which includes the verdicts.
        update_bytes: Peak memory of all updates; zero where there is no accelerator.
        lengths: Mean length of the completions of each step.

    """

    starts: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    update_bytes: int = 0
    lengths: list[float] = field(default_factory=list)

    def list_seconds(self) -> list[float]:
        """Return the seconds of each step."""
        return [end - start for start, end in itertools.pairwise(self.starts)]


def time_trl_steps(
    steps: int,
    clock: Callable[[], float] = time.perf_counter,
    stack: str | None = None,
    *,
    model: Any = None,
    tokenizer: Any = None,
    task: ReasoningGym | None = None,
    lora: LoRA | None = None,
    **settings: Any,
) -> TrlSteps:
    """Train with TRL's GRPOTrainer and return the times of its steps.

    Args:
        steps: Number of steps.
        clock: Clock that is read; it must wait for an accelerator.
        stack: Condition whose stack gives the advantages; TRL's own if None.
        model: Model of transformers; the embedded policy if None.
        tokenizer: Its tokenizer; TRL reads that of the embedded policy if None.
        task: Questions and verdicts; those of the benchmark if None.
        lora: The adapter; that of the benchmark if None.
        **settings: Settings of TRL that replace those of the benchmark.

    """
    from datasets import Dataset  # noqa: PLC0415
    from peft import LoraConfig  # noqa: PLC0415
    from transformers import TrainerCallback  # noqa: PLC0415
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415

    from rlcredit.bridge.trl import CreditGRPOTrainer  # noqa: PLC0415

    task = task or ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=_PROMPT_COUNT, validation_size=64)
    task.setup()
    conversations = [(task.build_conversation(example), example.answer) for example in task.train_set]
    rows = [{"prompt": conversation, "answer": answer} for conversation, answer in conversations]
    lora = lora or LoRA(_LORA_RANK, _LORA_ALPHA)

    def reward(completions: list, answer: list[str], **_: object) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        verdicts = task.judge(texts, [Example("", reference, {}) for reference in answer])
        return [float(verdict is Verdict.RIGHT) for verdict in verdicts]

    record = TrlSteps()

    class StepClock(TrainerCallback):
        def on_step_begin(self, *_: object, **__: object) -> None:
            record.starts.append(clock())
            record.updates.append(-clock())

        def on_step_end(self, *_: object, **__: object) -> None:
            record.updates[-1] += clock()
            record.update_bytes = max(record.update_bytes, take_peak_bytes())

        def on_train_end(self, *_: object, **__: object) -> None:
            record.starts.append(clock())

    def leave_out(sample: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def sample_apart(batch: Any) -> Any:
            record.updates[-1] += clock()
            record.update_bytes = max(record.update_bytes, take_peak_bytes())
            inputs = sample(batch)
            take_peak_bytes()
            record.updates[-1] -= clock()
            return inputs

        return sample_apart

    with tempfile.TemporaryDirectory() as folder:
        defaults = {
            "output_dir": folder,
            "max_steps": steps,
            "per_device_train_batch_size": _PROMPT_COUNT * _COMPLETION_COUNT,
            "num_generations": _COMPLETION_COUNT,
            "max_completion_length": _MAX_TOKENS,
            "temperature": _TEMPERATURE,
            "learning_rate": _LEARNING_RATE,
            "weight_decay": 0.0,
            "max_grad_norm": _MAX_GRADIENT_NORM,
            "lr_scheduler_type": "constant",
            "scale_rewards": "none",
            "gradient_checkpointing": False,
            "use_cpu": True,
            "bf16": False,
            "report_to": "none",
            "save_strategy": "no",
            "logging_steps": 1,
            "disable_tqdm": True,
        }
        config = GRPOConfig(**defaults | settings)
        make_trainer = GRPOTrainer if stack is None else partial(CreditGRPOTrainer, stack=stack)
        trainer = make_trainer(
            model=model or Policy().location,
            processing_class=tokenizer,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            peft_config=LoraConfig(
                r=lora.rank, lora_alpha=lora.alpha, target_modules=lora.targets, task_type="CAUSAL_LM"
            ),
            callbacks=[StepClock()],
        )
        trainer._prepare_inputs = leave_out(trainer._prepare_inputs)
        trainer.train()
    record.lengths = [line["completions/mean_length"] for line in trainer.state.log_history[:steps]]
    return record


def measure_bridge(rounds: int, steps: int, completions: int, max_tokens: int) -> dict[str, dict[str, list[float]]]:
    """Return CPU seconds per step of every side, and those of its parts, all steps but the first of every run.

    Args:
        rounds: Runs of each side, in turn.
        steps: Steps of a run.
        completions: Completions per prompt.
        max_tokens: Length at which a completion is cut.

    """
    from rlcredit.bridge import trl as bridge  # noqa: PLC0415

    parts: dict[str, list[float]] = {"credit": [], "reading": []}

    def time_part(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                parts[name].append(time.process_time() - start)

        return timed

    bridge.assign_credit = time_part("credit", bridge.assign_credit)
    trainer = bridge.CreditGRPOTrainer
    trainer._score_tokens = time_part("reading", trainer._score_tokens)
    sizes = {
        "per_device_train_batch_size": _PROMPT_COUNT * completions,
        "num_generations": completions,
        "max_completion_length": max_tokens,
    }
    seconds: dict[str, dict[str, list[float]]] = {
        side: {"step": [], "credit": [], "reading": []} for side in BRIDGE_STACKS
    }
    for _ in range(rounds):
        for side, stack in BRIDGE_STACKS.items():
            for values in parts.values():
                values.clear()
            with contextlib.redirect_stdout(io.StringIO()):  # TRL prints what it logs
                record = time_trl_steps(steps, time.process_time, stack, **sizes)
            seconds[side]["step"] += record.list_seconds()[1:]
            for name, values in parts.items():
                seconds[side][name] += values[1:-1]
    return seconds


def print_bridge(seconds: dict[str, dict[str, list[float]]]) -> None:
    """Print medians of every side, and the shares of TRL's own step that a stack takes."""
    trl_seconds = statistics.median(seconds["trl"]["step"])
    rows = []
    for side, parts in seconds.items():
        shares = {
            name: f"{statistics.median(parts[name]) / trl_seconds:.1%}" if parts[name] else ""
            for name in ("credit", "reading")
        }
        step = statistics.median(parts["step"]) / trl_seconds
        rows.append(
            {"side": side, "CPU seconds a step": format_median_and_range(parts["step"]), "of TRL": f"{step:.2f}"}
        )
        rows[-1] |= {"assigning credit": shares["credit"], "reading tokens again": shares["reading"]}
    print_columns(rows)


def measure_seconds_per_step(side: str, steps: int, threads: int) -> float:
    """Run one side in a process of its own; return its median seconds from step to step, the first two left out."""
    command = [sys.executable, __file__, "--side", side, "--steps", str(steps), "--threads", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        sys.exit(process.stderr)
    return statistics.median(json.loads(process.stdout.splitlines()[-1])[2:])


def main() -> None:
    """Alternate both sides and print medians and their ratio."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--side", choices=["ours", "trl"])
    parser.add_argument("--bridge", action="store_true", help="TRL with its own advantages, and with those of a stack")
    parser.add_argument(
        "--completions", type=int, default=_COMPLETION_COUNT, help="completions per prompt, with --bridge"
    )
    parser.add_argument("--max_tokens", type=int, default=_MAX_TOKENS, help="tokens per completion, with --bridge")
    args = parser.parse_args()
    if args.bridge:
        silence_libraries()
        torch.set_num_threads(args.threads)
        bridge_seconds = measure_bridge(args.rounds, args.steps, args.completions, args.max_tokens)
        print_bridge(bridge_seconds)
        write_measurements(args.out, bridge=bridge_seconds)
        return
    if args.side:
        silence_libraries()
        torch.set_num_threads(args.threads)
        is_trl = args.side == "trl"
        print(json.dumps(time_trl_steps(args.steps).list_seconds() if is_trl else time_own_steps(args.steps)))
        return
    sides = {side: partial(measure_seconds_per_step, side, args.steps, args.threads) for side in ("trl", "ours")}
    seconds = measure_in_turns(sides, args.rounds)
    of_trl = {
        side: format_median_and_range(round_ratios(values, seconds["trl"]), 2) for side, values in seconds.items()
    }
    print_columns(
        [
            {"side": side, "seconds a step": format_median_and_range(seconds[side]), "of TRL": of_trl[side]}
            for side in sides
        ]
    )
    write_measurements(args.out, step=seconds)


if __name__ == "__main__":
    main()
