"""Time every probe on the embedded policy: seconds per measurement, extra backward passes, tokens decoded.

python -m studies.machinery.bench_probes --threads 1 --steps 8

"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import Callback

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.probes.credit_heatmap import CreditHeatmap
from callbacks.probes.credit_oracle import CreditOracle
from callbacks.probes.decision_pivots import DecisionPivots
from callbacks.probes.entropy_collapse import EntropyCollapse
from callbacks.probes.gradient_probe import GradientProbe
from callbacks.probes.noise_floor import NoiseFloor
from callbacks.probes.polarity_misalignment import PolarityMisalignment
from callbacks.probes.quadrant_stats import QuadrantStats
from callbacks.probes.signal_histogram import SignalHistogram
from callbacks.probes.signal_stats import SignalStats
from callbacks.probes.top_tokens import TopTokens
from callbacks.probes.zero_variance import ZeroVariance
from callbacks.signals.process_signal import ProcessSignal
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.pages.tables import Table
from studies.machinery.bench_step import STEP_PARTS, measure_training_steps

HOOKS = ("assign", "on_before_backward", "on_train_batch_end")
STACKS = {"maxrl": [MaxRL()], "hicra": [GRPO(), StrategicGrams(), HICRA()], "gtpo": [GRPO(), GTPO()]}
PROBES: list[Callable[[], CreditOperator]] = [
    SignalStats,
    ZeroVariance,
    DecisionPivots,
    PolarityMisalignment,
    EntropyCollapse,
    QuadrantStats,
    lambda: TopTokens(every_n_steps=1),
    lambda: CreditHeatmap(every_n_steps=1),
    lambda: SignalHistogram(every_n_steps=1),
    lambda: GradientProbe(every_n_steps=1),
    lambda: CounterfactualProbe(STACKS, every_n_steps=1),  # pyright: ignore[reportArgumentType]
    lambda: NoiseFloor(every_n_steps=1),
    lambda: CreditOracle(every_n_steps=1, completions=8, samples=64),
]


class ProbeTimer(Callback):
    """Last in the list: note per step what the probe took, in seconds and backward passes."""

    def __init__(self, probe: CreditOperator) -> None:
        self.seconds, self.backwards = 0.0, 0
        self.steps: list[tuple[float, int]] = []
        for hook in HOOKS:
            setattr(probe, hook, self.wrap_with_timer(getattr(probe, hook)))

    def wrap_with_timer(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """Return a hook that takes its time, and counts calls of ``torch.autograd.grad``."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            grad, started = torch.autograd.grad, time.perf_counter()

            def counted(*grad_args: Any, **grad_kwargs: Any) -> Any:
                self.backwards += 1
                return grad(*grad_args, **grad_kwargs)

            torch.autograd.grad = counted
            try:
                return hook(*args, **kwargs)
            finally:
                torch.autograd.grad = grad
                self.seconds += time.perf_counter() - started

        return watched

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Close the step."""
        self.steps.append((self.seconds, self.backwards))
        self.seconds, self.backwards = 0.0, 0


def measure_probe_row(probe: CreditOperator, steps: int) -> tuple[str, ...]:
    """Measure one probe; the first two steps warm up."""
    name, watch = type(probe).__name__, ProbeTimer(probe)
    stack = [GRPO(), StrategicGrams(), ProcessSignal(beta=1.0), HICRA(), probe, GTPO(), watch]
    if not isinstance(probe, PolarityMisalignment):
        stack.pop(2)
    steps_measured = measure_training_steps(steps, stack=stack)[2:]
    step_seconds = statistics.median(sum(step[part] for part in STEP_PARTS) for step in steps_measured)
    seconds, backwards = (statistics.median(column) for column in zip(*watch.steps[2:], strict=True))
    decoded = getattr(probe, "last", {}).get("decoded_tokens")
    tokens = f"{decoded:,.0f}" if decoded else "none"
    share = f"{seconds / (step_seconds - seconds):.0%}"
    return f"`{name}`", f"{seconds:.3f}", share, f"{backwards:.0f}", tokens


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(args.threads)
    rows = [measure_probe_row(make_probe(), args.steps) for make_probe in PROBES]
    columns = ("probe", "s per measurement", "of a step without it", "extra backwards", "tokens decoded")
    print(Table(columns, rows).to_markdown())


if __name__ == "__main__":
    main()
