"""The results of training under a condition, compared with its baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rlcredit.campaign.declaration import ALPHA
from rlcredit.cards.card import NO_DIFFERENCE, Card, CurvePoint
from rlcredit.cards.finding import Finding
from rlcredit.pages.number_formats import format_points_apart
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.condition_summary import estimate_over_runs
from rlcredit.report.evidence import FinishedRun
from rlcredit.statistics.collapse import collapsed_run_mask
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.run_aggregates import steps_to_threshold
from rlcredit.statistics.t_test import TTest, paired_t_test

PRIMARY_METRIC = "val/pass_at_1"

CARD_MARGIN = 0.01
"""Difference of it that would not matter."""

MOVED_ROUNDING = 1e-6
"""Share of credit that is moved by nothing but the rounding of float32."""


@dataclass(frozen=True)
class TrainingOutcome:
    """Results of the paired training runs.

    Args:
        comparison: Comparison with the baseline.
        runs: Finished runs of the condition.
        baseline: Finished runs of the baseline.
        rate: Learning rate of the condition.
        baseline_rate: Learning rate of the baseline.

    """

    comparison: ConditionComparison
    runs: Sequence[FinishedRun]
    baseline: Sequence[FinishedRun]
    rate: float
    baseline_rate: float

    @property
    def steps(self) -> int:
        """Return the number of steps per run."""
        return max(self.runs[0].metrics)

    @property
    def has_equal_answers(self) -> bool:
        """Whether every run answers exactly as the baseline's run with the same seed does."""
        pairs = zip(self.runs, self.baseline, strict=True)
        return all(np.array_equal(run.right[step], base.right[step]) for run, base in pairs for step in run.right)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about learning: at the end, during training, how fast, and how reliably."""
        result = self.comparison
        assert result.test is not None
        (end, flat), (entropy, base_entropy) = self._mean_end(PRIMARY_METRIC), self._mean_end("val/entropy")
        sentence = f"{len(self.runs)} runs end at {end:.3f}, the baseline's at {flat:.3f}."
        yield Finding("pass_at_1", "held-out pass@1 at the end", end, "share", baseline=flat, sentence=sentence)
        gain, on_the_way = result.test, paired_t_test(result.leads["area"].differences)
        sentence = f"It ends {format_paired_difference(gain, result.baseline)}: {result.verdict}."
        yield Finding("gain", "gain at the end, paired", *_convert_to_points(gain), sentence=sentence)
        points = round(100 * on_the_way.difference, 1)
        position = f"{abs(points)} points {'ahead' if points > 0 else 'behind'}" if points else "level"
        sentence = f"Over the whole run it is {position} on average."
        yield Finding("area_gain", "gain on the way, paired", *_convert_to_points(on_the_way), sentence=sentence)
        yield self._find_speed()
        yield from self._find_token_cost()
        yield self._find_collapses()
        sentence = f"The policy ends with {entropy:.3f} nats per token, under the baseline with {base_entropy:.3f}."
        yield Finding(
            "entropy", "held-out entropy at the end", entropy, "nats", baseline=base_entropy, sentence=sentence
        )
        sentence = f"Its learning rate is {self.rate:g}, the baseline's {self.baseline_rate:g}."
        yield Finding("rate", "learning rate", self.rate, "number", baseline=self.baseline_rate, sentence=sentence)

    @property
    def curves(self) -> dict[str, list[CurvePoint]]:
        """Held-out pass@1 over the runs, of the condition and of the baseline: step, mean, and its interval."""
        names = self.comparison.condition, self.comparison.baseline
        return {
            name: [_summarise_step(runs, step) for step in runs[0].metrics]
            for name, runs in zip(names, self._paired_runs, strict=True)
        }

    @property
    def _paired_runs(self) -> tuple[Sequence[FinishedRun], Sequence[FinishedRun]]:
        return self.runs, self.baseline

    def _mean_end(self, metric: str) -> tuple[float, float]:
        """Return the mean of a held-out metric after the last step, and the baseline's mean."""
        mean_value, base_mean = (
            float(np.mean([run.final_value(metric) for run in runs])) for runs in self._paired_runs
        )
        return mean_value, base_mean

    def _find_collapses(self) -> Finding:
        """Return the number of runs that ended far below the others."""
        falls, base = (
            int(collapsed_run_mask([run.final_value(PRIMARY_METRIC) for run in runs]).sum())
            for runs in self._paired_runs
        )
        sentence = f"{falls} of {len(self.runs)} runs end far below the others; {base} of the baseline's."
        return Finding(
            "collapses", "runs that collapsed", float(falls), "number", baseline=float(base), sentence=sentence
        )

    def _find_token_cost(self) -> Iterator[Finding]:
        """Yield the tokens decoded per step, and the gain at equal numbers of them, where all runs have counted."""
        if not all(run.tokens for runs in self._paired_runs for run in runs):
            return
        counts, base = ([run.tokens[max(run.tokens)]["decoded"] for run in runs] for runs in self._paired_runs)
        per_step, base_per_step = float(np.mean(counts)) / self.steps, float(np.mean(base)) / self.steps
        sentence = f"A step decodes {per_step:,.0f} tokens for training, the baseline's {base_per_step:,.0f}."
        yield Finding(
            "tokens", "tokens decoded per step", per_step, "tokens", baseline=base_per_step, sentence=sentence
        )
        budget = min(*counts, *base)
        ends = [
            np.array([run.value_at_tokens(PRIMARY_METRIC, "decoded", budget) for run in runs])
            for runs in self._paired_runs
        ]
        gain = paired_t_test(ends[0] - ends[1])
        gain_text = format_paired_difference(gain, self.comparison.baseline)
        sentence = f"After {budget:,} decoded tokens, the least of any run, it is {gain_text}."
        title = "gain at equal tokens, paired"
        yield Finding("token_gain", title, *_convert_to_points(gain), sentence=sentence)

    def _find_speed(self) -> Finding:
        """Return the number of steps needed for half of the baseline's gain."""
        start = np.mean([min(run.curve(PRIMARY_METRIC).items())[1] for run in self.baseline])
        threshold = float((start + self._mean_end(PRIMARY_METRIC)[1]) / 2)
        steps_needed, base = (
            np.array([steps_to_threshold(run.curve(PRIMARY_METRIC), threshold) for run in runs])
            for runs in self._paired_runs
        )
        failures = int(np.isinf(steps_needed).sum())
        capped_steps = [np.where(np.isinf(steps), self.steps, steps) for steps in (steps_needed, base)]
        difference = paired_t_test(capped_steps[0] - capped_steps[1])
        failure_text = f"; {failures} of {len(steps_needed)} runs never get there" if failures else ""
        return Finding(
            "steps",
            f"steps to {threshold:.2f}",
            float(capped_steps[0].mean()),
            "steps",
            float(capped_steps[1].mean() + difference.interval.low),
            float(capped_steps[1].mean() + difference.interval.high),
            float(capped_steps[1].mean()),
            f"Half of the baseline's gain takes {capped_steps[0].mean():.0f} steps, under the baseline "
            f"{capped_steps[1].mean():.0f}{failure_text}.",
        )


def conclude_card(card: Card, outcome: TrainingOutcome) -> tuple[str, str]:
    """Return the conclusion and its sentence.

    Where the stack moves no credit and every answer of every run is that of the baseline, there is no difference; else
    the verdict is that of the paired runs.
    """
    displacement, comparison = card.finding("moved"), outcome.comparison
    if outcome.has_equal_answers and displacement and displacement.estimate < MOVED_ROUNDING:
        credit = f"{card.name} gives every token the baseline's credit, up to a common factor"
        return NO_DIFFERENCE, f"{credit}, and every run answers as the baseline's does."
    assert comparison.test is not None
    runs = f"{len(outcome.runs)} paired runs of {outcome.steps} steps"
    is_equivalent = comparison.verdict.startswith("equivalent")
    interval_text = f"; {describe_equivalence(comparison.test)}" if is_equivalent else ""
    ends = format_paired_difference(comparison.test, card.baseline)
    return comparison.verdict, f"After {runs} {card.name} ends {ends}{interval_text}."


def format_paired_difference(test: TTest, baseline: str) -> str:
    """Format how far a condition ends from its baseline, with the interval."""
    difference, _, low, high = _convert_to_points(test)
    return format_points_apart(difference, low, high, baseline)


def _summarise_step(runs: Sequence[FinishedRun], step: int) -> CurvePoint:
    """Return step, mean, and the two ends of its interval; a share lies between 0 and 1, Student's interval may not."""
    estimate = estimate_over_runs([run.metrics[step][PRIMARY_METRIC] for run in runs])
    low, high = estimate.interval[:2] if estimate.interval else (estimate.mean, estimate.mean)
    return step, estimate.mean, max(0.0, low), min(1.0, high)


def describe_equivalence(test: TTest) -> str:
    """Describe the interval by which a difference is called equivalent."""
    inner = equivalence_test(test, CARD_MARGIN, ALPHA).interval
    ends = f"{_format_signed_number(100 * inner.low)} to {_format_signed_number(100 * inner.high)}"
    return f"the {100 * inner.level:.0f} % interval, {ends}, lies within"


def _format_signed_number(number: float) -> str:
    return f"{round(number, 1) + 0.0:+.1f}"


def _convert_to_points(test: TTest) -> tuple[float, str, float, float]:
    """Return a paired difference as a finding takes it: estimate, unit, and the ends of its interval."""
    return 100 * test.difference, "points", 100 * test.interval.low, 100 * test.interval.high
