"""Seconds per GRPO step, TRL's GRPOTrainer and ours in turn: same policy, prompts, completions, LoRA, threads.

python -m pip install -e ".[bench]"
python scripts/bench_trl.py --rounds 5 --steps 12 --threads 1

Both sides have the set-up of ``configs/tiny.yaml`` and are timed from the beginning of a step to that of the next.

"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

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


def time_trl_steps(steps: int) -> list[float]:
    """Return when each step of TRL's GRPOTrainer begins."""
    from datasets import Dataset  # noqa: PLC0415
    from peft import LoraConfig  # noqa: PLC0415
    from transformers import TrainerCallback  # noqa: PLC0415
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415

    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=PROMPTS, validation_size=64)
    task.setup()
    rows = [{"prompt": [{"role": "user", "content": e.question}], "answer": e.answer} for e in task.train_set]

    def reward(completions: list, answer: list[str], **_: object) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        verdicts = task.judge(texts, [Example("", reference, {}) for reference in answer])
        return [float(verdict is Verdict.RIGHT) for verdict in verdicts]

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.begun: list[float] = []

        def on_step_begin(self, *_: object, **__: object) -> None:
            self.begun.append(time.perf_counter())

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=PROMPTS * COMPLETIONS,
            num_generations=COMPLETIONS,
            max_completion_length=MAX_TOKENS,
            temperature=TEMPERATURE,
            learning_rate=LR,
            weight_decay=0.0,
            max_grad_norm=CLIP,
            lr_scheduler_type="constant",
            scale_rewards="none",
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=Policy().location,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            peft_config=LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"),
            callbacks=[clock],
        )
        trainer.train()
    return clock.begun


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
    args = parser.parse_args()
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
