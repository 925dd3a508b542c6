"""Table of a campaign: the lead at the end beside the lead by area, both corrected over the campaign.

python -m studies.lead_tables headline_best

Differences are paired by seed. Where a run of either side collapsed, the exact sign flip decides and the interval is at
least as wide as the interval of that test; elsewhere Student's t does. Holm's procedure corrects the p of all ends of a
campaign together, and the p of all areas together. The verdict is the verdict of the campaign's report.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from rlcredit.statistics.headroom import Headroom, area_headroom
from rlcredit.statistics.paired_comparison import NO_MARGIN, conclude_paired_family, paired_test
from rlcredit.statistics.power import detectable_effect
from rlcredit.statistics.run_aggregates import largest_fall, learning_curve_area
from studies.numbers import PASS, Estimate, format_estimate, name_conclusion, read_results

LEVEL = 0.05


@dataclass(frozen=True)
class PairedValues:
    """Hold the paired differences of one comparison, in proportions.

    Args:
        ends: Differences of pass@1 at the end of the runs.
        areas: Differences of the area under pass@1.
        steadiness: Differences of the largest fall, positive where the baseline falls deeper.
        collapsed: Whether a run of either side collapsed.
        measure: Measure that the campaign declared: end, area or steadiness.

    """

    ends: np.ndarray
    areas: np.ndarray
    steadiness: np.ndarray
    collapsed: bool
    measure: str

    @property
    def declared(self) -> np.ndarray:
        """Differences of the declared measure."""
        return {"end": self.ends, "area": self.areas, "steadiness": self.steadiness}[self.measure]


@dataclass(frozen=True)
class Lead:
    """Hold the mean of paired differences in points, with its interval and its corrected p."""

    estimate: Estimate
    p: float


@dataclass(frozen=True)
class ComparisonLeads:
    """Hold what a campaign says of one comparison.

    Args:
        row: Row of the report's ``comparisons.csv``.
        end: Lead at the end.
        area: Lead by area.
        declared: Lead by the declared measure.
        undecidable: Whether no outcome of this comparison could have been better or worse.

    """

    row: Mapping[str, str]
    end: Lead
    area: Lead
    declared: Lead
    undecidable: bool


def read_curves(study: str) -> dict[str, dict[int, dict[int, float]]]:
    """Return held-out pass@1 by condition, seed and step, or share of a budget."""
    rows = read_results(f"{study}/runs")
    mark = "budget" if "budget" in rows[0] else "step"
    curves: dict[str, dict[int, dict[int, float]]] = {}
    for row in rows:
        curve = curves.setdefault(row["condition"], {}).setdefault(int(row["seed"]), {})
        curve[int(row[mark])] = float(row[PASS])
    return curves


def measure_curve_area(curve: Mapping[int, float]) -> float:
    """Return the mean height of a curve."""
    return float(learning_curve_area(*zip(*sorted(curve.items()), strict=True)))


def measure_fall(curve: Mapping[int, float]) -> float:
    """Return the largest fall of a curve below its highest point before."""
    return largest_fall([curve[place] for place in sorted(curve)])


def pair_campaign_values(study: str) -> list[PairedValues]:
    """Return the paired differences of every comparison of a campaign, in the order of its report."""
    curves = read_curves(study)
    values = []
    for row in read_results(f"{study}/comparisons"):
        condition, baseline = curves[row["condition"]], curves[row["baseline"]]
        pairs = [(condition[seed], baseline[seed]) for seed in sorted(condition)]
        ends = np.array([one[max(one)] - base[max(base)] for one, base in pairs]).round(12)
        areas = np.array([measure_curve_area(one) - measure_curve_area(base) for one, base in pairs]).round(12)
        falls = np.array([measure_fall(base) - measure_fall(one) for one, base in pairs]).round(12)
        collapsed = int(row["collapsed"]) + int(row["baseline_collapsed"]) > 0
        is_end = np.isclose(ends.mean(), float(row["difference"]), atol=1e-9)  # older rows do not say
        values.append(PairedValues(ends, areas, falls, collapsed, row.get("measure") or ("end" if is_end else "area")))
    return values


def measure_leads(differences: list[np.ndarray], collapsed: list[bool]) -> list[Lead]:
    """Return the leads of all comparisons of a campaign by one measure, corrected together."""
    tests = [paired_test(row, NO_MARGIN, fell) for row, fell in zip(differences, collapsed, strict=True)]
    leads = []
    for conclusion in conclude_paired_family(tests, NO_MARGIN):
        assert conclusion is not None
        low, high, _ = conclusion.test.interval
        numbers = (conclusion.test.difference, low, high)
        leads.append(Lead(Estimate(*(100 * number for number in numbers)), conclusion.p))
    return leads


def find_headroom(study: str, baseline: str) -> Headroom:
    """Return the largest leads over a baseline that a run could have in a campaign, in proportions."""
    curves = read_curves(study)
    best = max(max(curve.values()) for runs in curves.values() for curve in runs.values())
    runs = [dict(sorted(curve.items())) for curve in curves[baseline].values()]
    return area_headroom([*runs[0]], [[*curve.values()] for curve in runs], best)


def measure_room(study: str, baseline: str) -> float:
    """Return the largest lead by area that a run could have, in points."""
    return 100 * find_headroom(study, baseline).by_area


def measure_detectable_lead(study: str) -> float:
    """Return the true lead that a comparison of a campaign finds with a power of 80 %, in points.

    Differences are taken to spread as those of the median comparison do, and Holm's procedure to divide the level by
    the number of comparisons, which it does for the first.
    """
    values = pair_campaign_values(study)
    spread = float(np.median([pair.declared.std(ddof=1) for pair in values]))
    pairs = len(values[0].declared)
    return 100 * spread * detectable_effect(pairs, conditions=1, alpha=LEVEL / len(values))


def compare_campaign(study: str) -> list[ComparisonLeads]:
    """Return what a campaign says of each of its comparisons, by end and by area."""
    rows, values = read_results(f"{study}/comparisons"), pair_campaign_values(study)
    collapsed = [pair.collapsed for pair in values]
    differences = ([getattr(pair, name) for pair in values] for name in ("ends", "areas", "declared"))
    leads = [measure_leads(each, collapsed) for each in differences]
    tests = [paired_test(pair.declared, NO_MARGIN, pair.collapsed) for pair in values]
    words = [conclusion.words for conclusion in conclude_paired_family(tests, NO_MARGIN) if conclusion]
    return [
        ComparisonLeads(row, *measured, said.startswith("could not decide"))
        for row, *measured, said in zip(rows, *leads, words, strict=True)
    ]


def name_verdict(comparison: ComparisonLeads) -> str:
    """Return the verdict of a comparison in one to four words."""
    verdict = comparison.row["verdict"].partition(":")[0]
    if name_conclusion(verdict) == "undecided" and comparison.undecidable:
        return "undecidable"
    return verdict


def format_lead(lead: Estimate, digits: int = 1) -> str:
    """Write a lead with its interval, or say that all pairs are alike.

    Example:
        >>> format_lead(Estimate(5.11, 3.05, 7.18)), format_lead(Estimate(0.0, 0.0, 0.0))
        ('+5.1 (+3.0 to +7.2)', '+0.0 (all alike)')

    """
    text = format_estimate(lead, digits, sign=True)
    return text if lead.high - lead.low > 1e-9 else f"{text.partition(' ')[0]} (all alike)"


def render_lead_table(study: str, digits: int = 1) -> str:
    """Return the table of all comparisons of a campaign, in Markdown.

    Args:
        study: Name of the campaign.
        digits: Digits behind the point of a difference.

    """
    solved = {row["condition"]: float(row["pass_at_1"]) for row in read_results(f"{study}/conditions")}
    comparisons = compare_campaign(study)
    declared = pair_campaign_values(study)[0].measure
    heads = (
        *("condition", "pass@1", "against", "lead at the end", "p", "lead by area", "p"),
        f"verdict ({declared})",
    )
    cells = []
    for comparison in comparisons:
        baseline, condition = comparison.row["baseline"], comparison.row["condition"]
        cells.append(
            (
                condition,
                f"{solved[condition]:.3f}",
                f"{baseline}, {solved[baseline]:.3f}",
                format_lead(comparison.end.estimate, digits),
                format_p_value(comparison.end.p),
                format_lead(comparison.area.estimate, digits),
                format_p_value(comparison.area.p),
                name_verdict(comparison),
            )
        )
    return Table(heads, cells).to_markdown()


def main() -> None:
    """Print the tables of some campaigns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="+")
    parser.add_argument("--digits", type=int, default=1)
    args = parser.parse_args()
    print("\n\n".join(render_lead_table(campaign, args.digits) for campaign in args.campaigns))


if __name__ == "__main__":
    main()
