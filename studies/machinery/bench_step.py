"""Time the parts of a training step of the embedded policy: rollout, verify, credit, update; tokens per second.

python -m studies.machinery.bench_step --threads 1 --steps 20

Beside rollout and update: the arithmetic of the weights that they cannot do without (two operations a weight and token
forwards, two more backwards, prompts once per group), as a share of what the machine does in a product of matrices.

"""

import statistics
from collections.abc import Sequence
from functools import partial

import torch
from benchmarks import make_benchmark_parser, measure_peak_rate, write_measurements
from lightning.pytorch import Callback
from short_runs import StepMetricsRecorder, train_unlogged
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.policy.policy import Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

STEP_PARTS = ("time/rollout", "time/verify", "time/credit", "time/update")


def measure_training_steps(steps: int, stack: Sequence[Callback] = ()) -> list[dict[str, float]]:
    """Train the embedded policy for some steps and return the metrics of each."""
    task = ReasoningGym("chain_sum", CHAIN_SUM, prompts_per_step=8, validation_size=64)
    module = PolicyModule(optimizer=partial(torch.optim.AdamW, lr=5e-4))
    recorder = StepMetricsRecorder()
    train_unlogged(module, task, steps, [*(stack or [GRPO()]), recorder])
    return recorder.steps


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
