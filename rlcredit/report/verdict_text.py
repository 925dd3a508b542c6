"""What a verdict means, and the numbers that belong beside it, said where the verdict stands."""

from collections.abc import Iterator

from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.pages.number_formats import format_difference_interval, format_p_value, format_signed_points
from rlcredit.report.condition_comparison import FEWEST_PAIRS, ConditionComparison
from rlcredit.report.run_measures import MeasuredLead

_COST_WORDS: dict[str, str] = dict(zip(TOKEN_KINDS, ("decoded", "read", "scored", "trained on"), strict=True))


MEASURE_WORDS = {
    "end": "The end of the curve",
    "area": "The area under the curve",
    "steadiness": "The steadiness of the curve",
    "level": "The share of the run left at the level",
}
"""What a verdict is about, by the declared measure."""


def explain_verdict(verdict: str, margin: float, subject: str) -> str:
    """Return the meaning of a verdict in one sentence; empty where the verdict says its reason itself.

    Args:
        verdict: Conclusion of a comparison.
        margin: Difference that was declared not to matter, as a share.
        subject: What the verdict is about, at the beginning of a sentence.

    Example:
        >>> explain_verdict("undecided: a new campaign needs 16 seeds", 0.01, "Pass@1 at the end")
        'Pass@1 at the end is shown neither to differ, nor to differ by less than 1 pp.'
        >>> explain_verdict("open: 3 of 8 pairs", 0.01, "Pass@1 at the end")
        ''

    """
    points = f"{100 * margin:g} pp"
    if verdict.endswith("cannot reach a verdict"):
        return f"Below {FEWEST_PAIRS} pairs no test reaches 5 %, however large the difference is."
    meanings = {
        "better": "to be higher",
        "worse": "to be lower",
        f"equivalent within {points}": f"to differ by less than {points}",
        "undecided": f"neither to differ, nor to differ by less than {points}",
    }
    kind = "undecided" if verdict.startswith("undecided: a new campaign") else verdict
    return f"{subject} is shown {meanings[kind]}." if kind in meanings else ""


def list_comparison_facts(comparison: ConditionComparison) -> Iterator[str]:
    """Yield the facts that belong beside a verdict: both measures, power, head-room and costs; none without pairs."""
    if not comparison.seeds:
        return
    leads = [
        f"{measure}{' (declared)' if measure == comparison.measure else ''} {format_lead(lead)}"
        for measure, lead in comparison.leads.items()
    ]
    yield "; ".join(leads)
    if comparison.detectable is not None:
        yield f"a difference of {100 * comparison.detectable:.1f} pp would have been found with a power of 80 %"
    if comparison.headroom:
        start, area = 100 * comparison.headroom.at_first, 100 * comparison.headroom.by_area
        yield f"largest possible lead: {area:.1f} pp by area, {start:.1f} pp at the first mark"
    if comparison.costs:
        yield f"tokens of a run, in brackets over the baseline's: {format_costs(comparison)}"


def format_lead(lead: MeasuredLead) -> str:
    """Format a lead in percentage points, with its interval and its corrected p-value as far as they are known."""
    points = f"{format_signed_points(float(lead.differences.mean()))} pp"
    interval = f" ({format_difference_interval(lead.test.interval)})" if lead.test else ""
    return points + interval + ("" if lead.p is None else f", p {format_p_value(lead.p)}")


def format_costs(comparison: ConditionComparison) -> str:
    """Format the tokens of a run by kind, and how many times the baseline's they are."""
    parts = []
    for kind, cost in comparison.costs.items():
        if not cost.tokens and cost.ratio is None:  # neither uses any
            continue
        ratio = "" if cost.ratio is None else f" ({cost.ratio:.2f})"
        parts.append(f"{cost.tokens:,.0f} {_COST_WORDS[kind]}{ratio}")
    return ", ".join(parts)
