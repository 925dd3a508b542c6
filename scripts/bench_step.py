"""Time the parts of a training step of the embedded policy: rollout, verify, credit, update; tokens per second.

python scripts/bench_step.py --threads 1 --steps 20

Beside rollout and update: the arithmetic of the weights that they cannot do without (two operations a weight and token
forwards, two more backwards, prompts once per group), as a share of what the machine does in a product of matrices.

"""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from benchmarks import make_benchmark_parser, write_measurements
from lightning.pytorch import Callback, Trainer
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.policy.policy import Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule
from rlcredit.training.step_state import read_clock

CPU_DEVICE = torch.device("cpu")
STEP_PARTS = ("time/rollout", "time/verify", "time/credit", "time/update")


class StepMetricsRecorder(Callback):
    """Keep what every step measured of itself, once all of it has been logged."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Have the step before remembered when the next begins."""
        pl_module.between_steps.append(lambda: trainer.global_step and self.copy_step_metrics(trainer))

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Remember the last one."""
        self.copy_step_metrics(trainer)

    def copy_step_metrics(self, trainer: Trainer) -> None:
        """Copy the metrics of one step."""
        self.steps.append({name: float(value) for name, value in trainer.callback_metrics.items()})


def measure_training_steps(steps: int, stack: Sequence[Callback] = ()) -> list[dict[str, float]]:
    """Train the embedded policy for some steps and return the metrics of each."""
    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=8, validation_size=64)
    module = PolicyModule(optimizer=partial(torch.optim.AdamW, lr=5e-4))
    recorder = StepMetricsRecorder()
    train_unlogged(module, task, steps, [*(stack or [GRPO()]), recorder])
    return recorder.steps


def measure_peak_rate(size: int = 1024, device: torch.device = CPU_DEVICE, dtype: torch.dtype = torch.float32) -> float:
    """Return the operations a second of a product of two square matrices, the best of some."""
    factors = [torch.randn(size, size, device=device).to(dtype) for _ in range(2)]
    return 2 * size**3 / find_least_time(lambda: torch.mm(*factors), device)


def find_least_time(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the fastest of eight calls, the work of an accelerator included."""
    seconds = []
    for _ in range(8):
        start = read_clock(device)
        work()
        seconds.append(read_clock(device) - start)
    return min(seconds)


def count_multiplied_weights() -> int:
    """Return the number of weights of the embedded policy that multiply a token: all matrices, the head among them."""
    policy = Policy()
    policy.load()
    base = policy.lm.get_base_model()
    return sum(weight.numel() for name, weight in base.named_parameters() if weight.dim() == 2 and "lora_" not in name)


def main() -> None:
    """Print medians over the steps after the first two."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(args.threads)
    steps = measure_training_steps(args.steps)[2:]
    medians = {part: statistics.median(step[part] for step in steps) for part in STEP_PARTS}
    total = sum(medians.values())
    tokens = 128 * statistics.median(step["train/completion_length"] for step in steps) + 8 * 27
    peak_rate = measure_peak_rate()
    operations = 2 * count_multiplied_weights() * tokens
    minimum = {"time/rollout": operations / peak_rate, "time/update": 2 * operations / peak_rate}
    for part, seconds in medians.items():
        share = f"   {minimum[part] / seconds:.1%} of {peak_rate / 1e9:.0f} GFLOP/s" if part in minimum else ""
        print(f"{part.removeprefix('time/'):<8} {seconds * 1000:8.1f} ms  {seconds / total:6.1%}{share}")
    speed = statistics.median(step["train/tokens_per_second"] for step in steps)
    length = statistics.median(step["train/completion_length"] for step in steps)
    print(f"{'step':<8} {total * 1000:8.1f} ms   {speed:,.0f} sampled tokens/s, mean length {length:.0f}")
    write_measurements(args.out, step=medians, peak=peak_rate, least=minimum)


if __name__ == "__main__":
    main()
