"""The tables of a report for people: rounded, with differences in percentage points."""

from collections.abc import Mapping, Sequence
from statistics import fmean as mean

from rlcredit.campaign.config_differences import flatten_config, hash_config
from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.campaign.run_spec import name_run
from rlcredit.pages.number_formats import (
    NO_VALUE,
    format_difference_interval,
    format_p_value,
    format_signed_points,
    format_with_interval,
)
from rlcredit.pages.tables import Table
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.condition_summary import ConditionSummary, MeanEstimate
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.run_measures import summarise_run
from rlcredit.statistics.collapse import clopper_pearson_limit
from rlcredit.statistics.variance_components import VarianceComponents


def label_metric(metric: str) -> str:
    """Return the axis label of a held-out metric.

    Example:
        >>> label_metric("val/pass_at_1")
        'pass@1'

    """
    return metric.removeprefix("val/").replace("_at_", "@")


def _format_estimate(estimate: MeanEstimate) -> str:
    """Format a share and its interval, cut off at 0 and 1, which Student's interval may exceed."""
    if estimate.interval is None:
        return f"{estimate.mean:.3f}"
    low, high = (min(1.0, max(0.0, end)) for end in estimate.interval[:2])
    return format_with_interval(estimate.mean, low, high, ".3f")


COMPARISON_TERMS = {
    "difference": "mean of the paired differences, in percentage points; pairs share data, first weights and noise",
    "95 %": "interval of the paired t over seeds, for these questions; where runs collapsed, as wide as that of the "
    "sign-flip test too",
    "new questions too": "the same interval with the variance of questions added, so that it is never narrower",
    "p (Holm)": "p-value of no difference, corrected for all comparisons of the campaign",
    "sign flip": "p-value that assumes symmetry only, exact up to 20 pairs, not corrected",
    "equivalence": "p-value of a difference as large as the margin: two one-sided tests, corrected",
    "g": "Hedges' g, the difference in standard deviations of the paired differences",
    "wins": "how often a run beats one of the baseline, over all pairs of runs",
}
SUMMARY_TERMS = {
    "collapsed": "runs that ended more than 10 pp below the median of the condition, and the highest rate that so many "
    "leave possible (95 %, one-sided)",
    "pass@1": "mean over runs with its 95 % interval, for new seeds and questions; below six runs for new seeds",
    "middle half": "mean of the middle half of the runs (interquartile mean)",
    "between runs": "standard deviation between runs",
    "area": "area under the learning curve, as its mean height",
}
VARIANCE_TERMS = {
    "arm": "the condition, in which runs are nested",
    "prompt": "the question, common to all runs",
    "residual": "sampling and every interaction",
}
TOKEN_TERMS = {
    "decoded": "tokens decoded for training, all rounds of dynamic sampling and continuations for operators",
    "prefill": "distinct prompts and continued prefixes, read before decoding",
    "forward": "tokens of passes without gradient",
    "backward": "tokens of updates, with their distinct prompts",
}


def format_difference(comparison: ConditionComparison) -> tuple[str, str]:
    """Format the mean difference of a comparison and its interval, in percentage points."""
    difference = comparison.mean_difference
    points = NO_VALUE if difference is None else format_signed_points(difference)
    return points, format_difference_interval(comparison.interval)


def make_comparison_table(comparisons: Sequence[ConditionComparison]) -> Table:
    """Return the table of the numbers behind each conclusion; differences in percentage points."""
    rows = []
    for comparison in comparisons:
        ps = (comparison.p, comparison.sign_flip, comparison.p_equivalence)
        effect = f"{comparison.effect.g:.2f}" if comparison.effect else NO_VALUE
        wins = f"{comparison.improves:.0%}" if comparison.improves is not None else NO_VALUE
        new_questions = format_difference_interval(comparison.general)
        cells = (*format_difference(comparison), new_questions, *map(format_p_value, ps), effect, wins)
        rows.append((comparison.labels[0], str(len(comparison.seeds)), *cells))
    columns = ("condition", "pairs", *COMPARISON_TERMS)
    return Table(columns, rows, terms=COMPARISON_TERMS).without_empty_columns(NO_VALUE)


def make_summary_table(evidence: CampaignEvidence, summaries: Sequence[ConditionSummary]) -> Table:
    """Return the table of single conditions."""
    ks = sorted({evidence.pass_k(summary.condition) for summary in summaries})
    pass_at_k = f"pass@{' or '.join(map(str, ks))}"
    columns = ("condition", "runs", "collapsed", "pass@1", pass_at_k, "middle half", "between runs", "area")
    rows = [
        (
            evidence.declaration.label_condition(summary.condition),
            str(summary.runs),
            f"{summary.collapsed} (< {clopper_pearson_limit(summary.collapsed, summary.runs):.0%})",
            _format_estimate(summary.pass_at_1),
            _format_estimate(summary.pass_at_k),
            f"{summary.iqm:.3f}",
            f"{summary.deviation:.3f}" if summary.deviation is not None else NO_VALUE,
            _format_estimate(summary.area),
        )
        for summary in summaries
    ]
    return Table(columns, rows, terms=SUMMARY_TERMS)


def make_variance_table(decompositions: Mapping[str, VarianceComponents]) -> Table:
    """Return the table of the variance share of each factor; a dash if it is none."""
    factors = list(dict.fromkeys(factor for components in decompositions.values() for factor in components.variances))
    rows = [
        (name, *(f"{components.shares[factor]:.1%}" if factor in components.shares else NO_VALUE for factor in factors))
        for name, components in decompositions.items()
    ]
    return Table(("of", *factors), rows, terms=VARIANCE_TERMS)


def make_seed_table(evidence: CampaignEvidence) -> Table:
    """Return the table of what is compared of every run, or the reason why there is none."""
    declaration = evidence.declaration

    def value(condition: str, seed: int) -> str:
        name = name_run(condition, seed)
        if run := evidence.runs.get((condition, seed)):
            return f"{summarise_run(run, declaration):.4f}"
        return "refused" if name in evidence.refused else evidence.absent[name]

    rows = [(name, *(value(name, seed) for seed in declaration.seeds)) for name in declaration.conditions]
    return Table(("condition", *(f"seed {seed}" for seed in declaration.seeds)), rows)


def make_token_table(evidence: CampaignEvidence) -> Table:
    """Return the table of the tokens that runs of each condition took, and of their worth at equal numbers of tokens.

    It has no rows where no run has counted them.
    """
    primary = evidence.declaration.primary
    runs_by_condition = {
        name: [run for run in evidence.runs_of(name) if run.tokens] for name in evidence.declaration.conditions
    }
    ends = [run.tokens[max(run.tokens)] for runs in runs_by_condition.values() for run in runs]
    equal = {kind: min((end[kind] for end in ends), default=0) for kind in ("decoded", "backward")}
    columns = (
        *("condition", "runs", "steps", "decoded a step", *TOKEN_KINDS),
        *(f"{label_metric(primary)} at {tokens:,} {kind}" for kind, tokens in equal.items()),
    )
    rows = []
    for name, runs in runs_by_condition.items():
        if not runs:
            continue
        last_counts = [run.tokens[max(run.tokens)] for run in runs]
        steps = [run.steps[max(run.steps)] for run in runs]
        per_step = mean(end["decoded"] / step_count for end, step_count in zip(last_counts, steps, strict=True))
        at_equal = (mean(run.value_at_tokens(primary, kind, equal[kind]) for run in runs) for kind in equal)
        means = (f"{mean(end[kind] for end in last_counts):,.0f}" for kind in TOKEN_KINDS)
        rows.append(
            (name, str(len(runs)), f"{mean(steps):,.0f}", f"{per_step:,.0f}", *means, *(f"{v:.3f}" for v in at_equal))
        )
    return Table(columns, rows, terms=TOKEN_TERMS)


def make_config_table(evidence: CampaignEvidence) -> Table:
    """Return the table of each condition's executed configuration, by hash, and the source it ran with."""
    rows = []
    for name in evidence.declaration.conditions:
        runs = evidence.runs_of(name)
        commits = sorted({shorten_commit(run.entry["versions"]["git_commit"]) for run in runs})
        minutes = sum(run.entry["seconds"] for run in runs) / 60
        source = ", ".join(commits) or NO_VALUE
        rows.append((name, str(len(runs)), _hash_condition_config(evidence, name), source, f"{minutes:.0f}"))
    return Table(("condition", "runs", "configuration", "source", "minutes"), rows)


def _hash_condition_config(evidence: CampaignEvidence, condition: str) -> str:
    """Return the hash of the configuration that a condition's runs executed, without what differs between runs."""
    leaves = flatten_config(evidence.ledger.content["configs"][condition])
    run_settings = ("seed_everything", "threads", "trainer.default_root_dir")
    return hash_config({name: value for name, value in leaves.items() if name not in run_settings})[:12]


def shorten_commit(commit: str) -> str:
    """Shorten a commit, keeping the mark of an edited source tree.

    Example:
        >>> shorten_commit("760a1acd0f5e1c0b9a-dirty"), shorten_commit("unknown")
        ('760a1acd0f5e-dirty', 'unknown')

    """
    return commit[:12] + ("-dirty" if commit.endswith("-dirty") else "")
