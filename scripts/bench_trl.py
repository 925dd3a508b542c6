"""Seconds per GRPO step, TRL's GRPOTrainer and ours in turn: same policy, prompts, completions, LoRA, threads.

python -m pip install -e ".[bench]"
python scripts/bench_trl.py --rounds 3 --steps 12 --threads 1

"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from bench_step import PARTS, measured_steps
from tiny_traces import CHAIN_SUM

from rlcredit.policy import Policy
from rlcredit.quiet import quiet
from rlcredit.tasks import Example, ReasoningGym
from rlcredit.verification.verifiers import Verdict

PROMPTS, COMPLETIONS, MAX_TOKENS, TEMPERATURE, LR, RANK, ALPHA = 8, 16, 128, 0.7, 5e-4, 16, 32


def ours(steps: int) -> list[float]:
    """Return the seconds of every step of ours."""
    return [sum(step[part] for part in PARTS) for step in measured_steps(steps)]


def theirs(steps: int) -> list[float]:
    """Return the seconds of every step of TRL's GRPOTrainer."""
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
            self.seconds: list[float] = []
            self.started = 0.0

        def on_step_begin(self, *_: object, **__: object) -> None:
            self.started = time.perf_counter()

        def on_step_end(self, *_: object, **__: object) -> None:
            self.seconds.append(time.perf_counter() - self.started)

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
    return clock.seconds


def measured(side: str, steps: int, threads: int) -> list[float]:
    """Run one side in a process of its own and return its seconds per step, the first two left out."""
    command = [sys.executable, __file__, "--side", side, "--steps", str(steps), "--threads", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])[2:]


def main() -> None:
    """Alternate both sides and print medians and their ratio, round by round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", choices=["ours", "trl"])
    args = parser.parse_args()
    if args.side:
        quiet()
        torch.set_num_threads(args.threads)
        print(json.dumps({"ours": ours, "trl": theirs}[args.side](args.steps)))
        return
    ratios = []
    for place in range(args.rounds):
        trl, own = (statistics.median(measured(side, args.steps, args.threads)) for side in ("trl", "ours"))
        ratios.append(own / trl)
        print(f"round {place + 1}: TRL {trl:.3f} s a step, ours {own:.3f} s, ours / TRL {own / trl:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
