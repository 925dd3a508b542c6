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
from functools import partial
from typing import Any

import torch
from benchmarks import (
    format_median_and_range,
    make_benchmark_parser,
    measure_in_turns,
    print_columns,
    round_ratios,
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

PROMPTS, COMPLETIONS, MAX_TOKENS, TEMPERATURE, LR, RANK, ALPHA, CLIP = 8, 16, 128, 0.7, 5e-4, 16, 32, 1.0


def time_own_steps(steps: int) -> list[float]:
    """Return when each step of ours begins."""
    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=PROMPTS, validation_size=64)
    optimizer = partial(torch.optim.AdamW, lr=LR, weight_decay=0.0)
    module = PolicyModule(
        policy=Policy(lora=LoRA(RANK, ALPHA)),
        sampling=Sampling(COMPLETIONS, MAX_TOKENS, TEMPERATURE),
        optimizer=optimizer,
    )
    starts: list[float] = []
    module.between_steps.append(lambda: starts.append(time.perf_counter()))
    train_unlogged(module, task, steps, [GRPO()], gradient_clip_val=CLIP)
    return starts


STACKS = {"trl": None, "flat": "sepa_paper/c1_grpo", "sepa": "sepa_paper/c8_maxrl_sepa"}
"""Sides of the comparison with a stack inside TRL: TRL's own advantages, and conditions."""


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
) -> list[float]:
    """Return when each step of TRL's GRPOTrainer begins, and when the last has ended.

    Args:
        steps: Number of steps.
        clock: Clock that is read.
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

    task = task or ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=PROMPTS, validation_size=64)
    task.setup()
    conversations = [(task.build_conversation(example), example.answer) for example in task.train_set]
    rows = [{"prompt": conversation, "answer": answer} for conversation, answer in conversations]
    lora = lora or LoRA(RANK, ALPHA)

    def reward(completions: list, answer: list[str], **_: object) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        verdicts = task.judge(texts, [Example("", reference, {}) for reference in answer])
        return [float(verdict is Verdict.RIGHT) for verdict in verdicts]

    class StepClock(TrainerCallback):
        def __init__(self) -> None:
            self.begun: list[float] = []

        def on_step_begin(self, *_: object, **__: object) -> None:
            self.begun.append(clock())

        def on_train_end(self, *_: object, **__: object) -> None:
            self.begun.append(clock())

    seen = StepClock()
    with tempfile.TemporaryDirectory() as folder:
        given = {
            "output_dir": folder,
            "max_steps": steps,
            "per_device_train_batch_size": PROMPTS * COMPLETIONS,
            "num_generations": COMPLETIONS,
            "max_completion_length": MAX_TOKENS,
            "temperature": TEMPERATURE,
            "learning_rate": LR,
            "weight_decay": 0.0,
            "max_grad_norm": CLIP,
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
        config = GRPOConfig(**given | settings)
        kind, further = (GRPOTrainer, {}) if stack is None else (CreditGRPOTrainer, {"stack": stack})
        trainer = kind(
            model=model or Policy().location,
            processing_class=tokenizer,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            peft_config=LoraConfig(
                r=lora.rank, lora_alpha=lora.alpha, target_modules=lora.targets, task_type="CAUSAL_LM"
            ),
            callbacks=[seen],
            **further,
        )
        trainer.train()
    return seen.begun


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
            begun = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                parts[name].append(time.process_time() - begun)

        return timed

    bridge.assign_credit = time_part("credit", bridge.assign_credit)
    trainer = bridge.CreditGRPOTrainer
    trainer._score_tokens = time_part("reading", trainer._score_tokens)
    sizes = {
        "per_device_train_batch_size": PROMPTS * completions,
        "num_generations": completions,
        "max_completion_length": max_tokens,
    }
    found: dict[str, dict[str, list[float]]] = {side: {"step": [], "credit": [], "reading": []} for side in STACKS}
    for _ in range(rounds):
        for side, stack in STACKS.items():
            for values in parts.values():
                values.clear()
            with contextlib.redirect_stdout(io.StringIO()):  # TRL prints what it logs
                starts = time_trl_steps(steps, time.process_time, stack, **sizes)
            found[side]["step"] += [after - before for before, after in itertools.pairwise(starts[1:])]
            for name, values in parts.items():
                found[side][name] += values[1:-1]
    return found


def print_bridge(found: dict[str, dict[str, list[float]]]) -> None:
    """Print medians of every side, and the shares of TRL's own step that a stack takes."""
    own = statistics.median(found["trl"]["step"])
    rows = []
    for side, parts in found.items():
        shares = {
            name: f"{statistics.median(parts[name]) / own:.1%}" if parts[name] else "" for name in ("credit", "reading")
        }
        step = statistics.median(parts["step"]) / own
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
    starts = json.loads(process.stdout.splitlines()[-1])
    return statistics.median(after - before for before, after in itertools.pairwise(starts[2:]))


def main() -> None:
    """Alternate both sides and print medians and their ratio."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--side", choices=["ours", "trl"])
    parser.add_argument("--bridge", action="store_true", help="TRL with its own advantages, and with those of a stack")
    parser.add_argument("--completions", type=int, default=COMPLETIONS, help="completions per prompt, with --bridge")
    parser.add_argument("--max_tokens", type=int, default=MAX_TOKENS, help="tokens per completion, with --bridge")
    args = parser.parse_args()
    if args.bridge:
        silence_libraries()
        torch.set_num_threads(args.threads)
        found = measure_bridge(args.rounds, args.steps, args.completions, args.max_tokens)
        print_bridge(found)
        write_measurements(args.out, bridge=found)
        return
    if args.side:
        silence_libraries()
        torch.set_num_threads(args.threads)
        print(json.dumps({"ours": time_own_steps, "trl": time_trl_steps}[args.side](args.steps)))
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
