"""Measures of the runs of a campaign: the end, the area, falls, how soon a level is reached, and what they cost."""

import dataclasses
from collections.abc import Sequence
from statistics import fmean as mean

import numpy as np
from numpy.typing import NDArray

from rlcredit.campaign.declaration import CampaignDeclaration, ReachedLevel
from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.report.evidence import CampaignEvidence, FinishedRun
from rlcredit.statistics.collapse import collapsed_run_mask
from rlcredit.statistics.headroom import Headroom, area_headroom
from rlcredit.statistics.paired_comparison import paired_test
from rlcredit.statistics.run_aggregates import largest_fall, learning_curve_area, steps_to_threshold
from rlcredit.statistics.t_test import TTest

Row = NDArray[np.float64]
Pairs = Sequence[tuple[FinishedRun, FinishedRun]]

COMMON_MEASURES = ("end", "area")
"""Measures of a run that every comparison shows, whichever was declared."""


@dataclasses.dataclass(frozen=True)
class MeasuredLead:
    """Lead of a condition by one measure of its runs.

    Args:
        differences: Differences of the measure in each pair, condition minus baseline, shape ``(n,)``.
        test: Paired t test, None below two pairs; where runs collapsed, its interval is no narrower than that of the
            sign-flip test.
        p: P-value of no difference, by Student's t or, where runs collapsed, by the sign flip; adjusted by Holm for all
            that is compared by the same measure. None where there is no conclusion.

    """

    differences: Row
    test: TTest | None = None
    p: float | None = None


@dataclasses.dataclass(frozen=True)
class TokenCost:
    """Tokens of one kind that a run used, on average, and a run of the baseline."""

    tokens: float
    baseline: float

    @property
    def ratio(self) -> float | None:
        """Tokens over the baseline's; None where the baseline has none."""
        return self.tokens / self.baseline if self.baseline else None


def count_collapses(evidence: CampaignEvidence, pairs: Pairs) -> tuple[int, int]:
    """Return the number of collapsed runs of the condition and of the baseline."""
    if not pairs:
        return 0, 0
    end, primary = evidence.declaration.end, evidence.declaration.primary
    ends = ([pair[side].metrics[end][primary] for pair in pairs] for side in (0, 1))
    runs, baseline_runs = (int(collapsed_run_mask(values).sum()) for values in ends)
    return runs, baseline_runs


def has_changed(run: FinishedRun, metric: str) -> bool:
    """Whether a held-out metric of a run is not the same at all evaluations: what changes nothing compares nothing."""
    return len({*run.curve(metric).values()}) > 1


def measure_lead(pairs: Pairs, declaration: CampaignDeclaration, measure: str, has_collapses: bool) -> MeasuredLead:
    """Return the differences of a measure, rounded so that equal shares of questions differ by exactly zero."""
    values = [[measure_run(run, declaration, measure) for run in pair] for pair in pairs]
    differences = np.array([value - base for value, base in values], dtype=np.float64).round(12)
    test = paired_test(differences, declaration.effect, has_collapses).test if len(pairs) >= 2 else None
    return MeasuredLead(differences, test)


def measure_headroom(evidence: CampaignEvidence, baseline_runs: Sequence[FinishedRun]) -> Headroom:
    """Return the largest possible leads over some runs, up to the best score of any run that is measured alike."""
    primary, baseline = evidence.declaration.primary, baseline_runs[0].condition
    best = max(
        max(run.curve(primary).values())
        for run in evidence.runs.values()
        if not evidence.list_metric_differences(run.condition, baseline)
    )
    curves = [run.curve(primary) for run in baseline_runs]
    return area_headroom([*curves[0]], [[*curve.values()] for curve in curves], best)


def measure_costs(condition_runs: Sequence[FinishedRun], baseline_runs: Sequence[FinishedRun]) -> dict[str, TokenCost]:
    """Return the tokens that a whole run takes by kind; empty unless all runs have counted them."""
    if not all(run.tokens for run in (*condition_runs, *baseline_runs)):
        return {}

    def average_count(runs: Sequence[FinishedRun], kind: str) -> float:
        return mean(run.tokens[max(run.tokens)][kind] for run in runs)

    return {
        kind: TokenCost(average_count(condition_runs, kind), average_count(baseline_runs, kind)) for kind in TOKEN_KINDS
    }


def summarise_run(run: FinishedRun, declaration: CampaignDeclaration) -> float:
    """Return the summary of a run that the campaign compares of its primary metric, as declared."""
    summary = declaration.summary
    return measure_run(run, declaration, "level" if isinstance(summary, ReachedLevel) else summary)


def measure_run(run: FinishedRun, declaration: CampaignDeclaration, measure: str) -> float:
    """Return one measure of a run: the end, the area, its steadiness, or how soon the declared level is reached."""
    primary, summary = declaration.primary, declaration.summary
    if measure == "end":
        return run.metrics[declaration.end][primary]
    if measure == "area":
        return measure_curve_area(run, primary)
    if measure == "steadiness":
        return 1 - largest_fall([*run.curve(primary).values()])
    assert isinstance(summary, ReachedLevel)
    return max(0.0, 1 - steps_to_threshold(run.curve(primary), summary.level) / declaration.end)


def measure_curve_area(run: FinishedRun, metric: str) -> float:
    """Return the area under a held-out curve of a run, in the unit of the curve."""
    curve = run.curve(metric)
    return float(learning_curve_area(list(curve), list(curve.values())))
