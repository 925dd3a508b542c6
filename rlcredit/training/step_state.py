"""State of a training module between two hooks of Lightning: phase, rollout in use, and measurements."""

import time
from dataclasses import asdict, dataclass, field
from enum import Enum

import torch

from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.training.nan_and_mismatch import UpdateValues


class Phase(Enum):
    """The phase of a run within its step."""

    BETWEEN_STEPS = "between steps"
    SAVING = "saving"
    SAMPLING = "sampling"
    UPDATING = "updating"
    EVALUATING = "evaluating"
    RECORDING_EVALUATION = "recording the evaluation"

    @property
    def is_interruptible(self) -> bool:
        """Whether nothing is half done: a checkpoint and the record would lack no part of a step."""
        return self in (Phase.BETWEEN_STEPS, Phase.SAMPLING, Phase.EVALUATING)

    @property
    def is_evaluation(self) -> bool:
        """Whether the evaluation after the last step has begun and has not been recorded."""
        return self in (Phase.EVALUATING, Phase.RECORDING_EVALUATION)


@dataclass
class StepState:
    """The state of one step; only ``skipped_in_a_row``, ``tokens_per_second`` and ``token_counts`` outlive it, saved.

    Attributes:
        phase: Where the run stands.
        rollout: The rollout that the next update uses; None between rollouts.
        update: Values of the update in progress, from its loss to its optimizer step.
        metrics: What has been measured about the rollout and its updates, by metric name; times in seconds.
        tokens_per_second: Sampled tokens per second of the last whole rollout, all processes together.
        token_counts: Tokens since the run began, all processes together; None if it continues from a checkpoint that
            does not tell.
        skipped: Whether the last update was passed over because it was not finite.
        skipped_in_a_row: How many updates have been passed over, up to the last one.

    """

    phase: Phase = Phase.BETWEEN_STEPS
    rollout: Rollout | None = None
    update: UpdateValues | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    tokens_per_second: float | None = None
    token_counts: TokenCounts | None = field(default_factory=TokenCounts)
    skipped: bool = False
    skipped_in_a_row: int = 0
    _lap_started: float = 0.0

    def add_tokens(self, token_counts: TokenCounts, device: torch.device) -> dict[str, int]:
        """Add the tokens of all processes since the last update to those of the run; return the sums, if known."""
        counts = token_counts.take_counts()
        numbers = sum_over_processes(torch.tensor(list(counts.values()), device=device)).tolist()
        if self.token_counts is None:
            return {}
        self.token_counts.add(**dict(zip(counts, numbers, strict=True)))
        return asdict(self.token_counts)

    def start_lap(self, device: torch.device) -> None:
        """Start measuring the next part of the step."""
        self._lap_started = read_clock(device)

    def end_lap(self, name: str, device: torch.device) -> None:
        """Record the seconds since the lap started as the metric ``name``, and start the next lap."""
        lap_end = read_clock(device)
        self.metrics[name] = lap_end - self._lap_started
        self._lap_started = lap_end

    def end_update(self, device: torch.device) -> float:
        """Return the seconds of an update, and add them to those of the rollout's earlier ones."""
        earlier_seconds = self.metrics.pop("time/update", 0.0)
        self.end_lap("time/update", device)
        seconds = self.metrics["time/update"]
        self.metrics["time/update"] += earlier_seconds
        return seconds

    def end_rollout(self, tokens: float) -> None:
        """Drop the rollout, of so many tokens in all processes, and measure the speed of its whole step."""
        seconds = sum(value for name, value in self.metrics.items() if name.startswith("time/"))
        self.tokens_per_second = tokens / seconds
        self.rollout = None


def read_clock(device: torch.device) -> float:
    """Return seconds on a monotonic clock, once an accelerator has finished what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
