"""The files of results follow from the values of the runs that lie beside them."""

import functools
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats
from statsmodels.stats.multitest import multipletests

from studies.csv_rows import read_csv_rows
from studies.lead_tables import compare_campaign, name_verdict, pair_campaign_values, render_lead_table
from studies.numbers import find_campaign
from studies.recompute_intervals import correct_interval

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "studies").glob("*/results/*/comparisons.csv"))
LEVEL = 0.05
ENUMERATED, DRAWN = 20, 0.005
"""Pairs up to which the sign flip visits every pattern; how far its p may be off where patterns are drawn."""

study = pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)


def declared(folder):
    return yaml.safe_load(find_campaign(folder.name).read_text(encoding="utf-8"))


def curves(folder):
    """Return held-out pass@1 by step, or by the share of a budget, of every run, by condition and seed."""
    found, place = {}, "budget" if "budget" in declared(folder) else "step"
    for row in read_csv_rows(folder / "runs.csv"):
        curve = found.setdefault(row["condition"], {}).setdefault(int(row["seed"]), {})
        curve[int(row[place])] = float(row["val/pass_at_1"])
    return found


def read_run_length(declaration):
    """Return the steps or the tokens after which a run ends."""
    budget = declaration.get("budget", {})
    return next((tokens for kind, tokens in budget.items() if kind.endswith("_tokens")), declaration.get("steps"))


def end(curve):
    return curve[max(curve)]


def area(curve):
    return np.trapezoid(list(curve.values()), list(curve)) / max(curve)


def steadiness(curve):
    """Return one less the largest fall between two evaluations, a later and any earlier one."""
    values = [curve[place] for place in sorted(curve)]
    return 1 - max(earlier - later for place, later in enumerate(values) for earlier in values[: place + 1])


SUMMARIES = {"end": end, "area": area, "steadiness": steadiness}
"""Of a curve, by the name a campaign declares."""


def paired_t(differences):
    """Return t, p, and the ends of the interval; where all pairs are alike there is no noise, and nothing to test."""
    if not differences.any():
        return 0, 1, 0, 0
    test = stats.ttest_1samp(differences, 0)
    return test.statistic, test.pvalue, *test.confidence_interval(0.95)


def tost(differences, margin):
    if not differences.any():
        return 0
    low = stats.ttest_1samp(differences + margin, 0, alternative="greater").pvalue
    return max(low, stats.ttest_1samp(differences - margin, 0, alternative="less").pvalue)


def collapses(values):
    """Count the runs that end more than 10 pp below the median of their condition."""
    return int((np.array(values) < np.median(values) - 0.1).sum())


@functools.cache
def signs(number):
    return np.array(list(product((-1, 1), repeat=number)))


def sign_flip(differences):
    """Return the exact p; every pattern of signs is one of the first half of the pairs and one of the second."""
    halves = np.split(differences, [len(differences) // 2])
    sums = np.add.outer(*(signs(len(half)) @ half for half in halves))
    return np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9 * abs(differences).sum())


def sign_flip_interval(differences):
    """Return the least and the largest shift that sign flips do not exclude; p changes at means of subsets only."""
    chosen = (signs(len(differences)) + 1) / 2
    means = np.unique(chosen[chosen.any(1)] @ differences / chosen[chosen.any(1)].sum(1))
    kept = [mean for mean in means if sign_flip(differences - mean) > 0.05]
    return min(kept), max(kept)


def ends(row, prefix=""):
    return float(row[f"{prefix}low"]), float(row[f"{prefix}high"])


def assert_interval(said, differences, fell):
    """Hold an interval to Student's, and where runs collapsed to the sign flip's as well."""
    interval = paired_t(differences)[2:]
    if fell and len(differences) <= ENUMERATED:
        low, high = sign_flip_interval(differences)
        interval = min(low, interval[0]), max(high, interval[1])
    elif fell:  # too many patterns to visit: each end is Student's, or lies where the sign flip begins to reject
        for student, wider in zip(interval, said, strict=True):
            shifted = differences - wider
            assert student == pytest.approx(wider) or sign_flip(shifted) == pytest.approx(LEVEL, abs=2 * DRAWN)
        return
    assert said == pytest.approx(tuple(interval), rel=1e-6)


@study
def test_every_declared_comparison_is_there(folder):
    declaration = declared(folder)
    others = [name for name in declaration["conditions"] if name != declaration["baseline"]]
    whole = {"all": {"baseline": declaration["baseline"], "conditions": others}}
    wanted = [
        (name, family["baseline"], condition)
        for name, family in declaration.get("families", whole).items()
        for condition in family["conditions"]
    ]
    found = [
        (row["family"] or "all", row["baseline"], row["condition"]) for row in read_csv_rows(folder / "comparisons.csv")
    ]
    assert found == wanted


@study
def test_comparisons_follow_from_the_values_of_the_runs(folder):
    declaration, runs = declared(folder), curves(folder)
    seeds, rows = declaration["seeds"], read_csv_rows(folder / "comparisons.csv")
    summary = SUMMARIES[declaration.get("summary", "end")]
    lengths = {max(curve) for runs_of in runs.values() for curve in runs_of.values()}
    assert lengths == {read_run_length(declaration)}
    assert [bool(row["p_holm"]) for row in rows] == [int(row["pairs"]) == len(seeds) for row in rows]
    tested = [row for row in rows if row["p_holm"]]
    pairs = [[(runs[row["condition"]][seed], runs[row["baseline"]][seed]) for seed in seeds] for row in tested]
    differences = [np.array([summary(one) - summary(base) for one, base in each]) for each in pairs]
    fallen = [[collapses([end(curve) for curve in arm]) for arm in zip(*each, strict=True)] for each in pairs]
    untested = [1.0] * (len(rows) - len(tested))
    ps = [sign_flip(each) if any(arms) else paired_t(each)[1] for each, arms in zip(differences, fallen, strict=True)]
    margin = declaration["effect"]
    equal = [1.0 if any(arms) else tost(each, margin) for each, arms in zip(differences, fallen, strict=True)]
    corrected = (multipletests(values + untested, method="holm")[1][: len(tested)] for values in (ps, equal))
    for row, each, pair, arms, p, same in zip(tested, differences, pairs, fallen, *corrected, strict=True):
        t = paired_t(each)[0]
        areas = np.array([area(one) - area(base) for one, base in pair])
        assert [int(row["collapsed"]), int(row["baseline_collapsed"])] == arms
        assert float(row["difference"]) == pytest.approx(each.mean(), abs=1e-12)
        assert float(row["t"]) == pytest.approx(t, rel=1e-6)
        assert_interval(ends(row), each, any(arms))
        if row["new_questions_low"]:
            low, high = ends(row, "new_questions_")
            assert low <= ends(row)[0] + 1e-6
            assert high >= ends(row)[1] - 1e-6
        off = {"abs": DRAWN} if len(each) > ENUMERATED else {"rel": 1e-6}
        assert float(row["p_holm"]) == pytest.approx(p, **(off if any(arms) else {"rel": 1e-6}))
        assert float(row["p_equivalence_holm"]) == pytest.approx(same, rel=1e-6)
        assert float(row["p_sign_flip"]) == pytest.approx(sign_flip(each), **off)
        assert float(row["area_difference"]) == pytest.approx(areas.mean(), abs=1e-12)
        assert_interval(ends(row, "area_"), areas, any(arms))
        decided = "equivalent" if same <= LEVEL else ("better" if each.mean() > 0 else "worse") if p <= LEVEL else ""
        said = row["verdict"].partition(":")[0].split(" within")[0]
        without = {"": ("undecided", "open", "could not decide", "no room"), "equivalent": ("no room",)}
        assert said in (decided, *without.get(decided, ()))


@study
def test_conditions_follow_from_the_values_of_the_runs(folder):
    runs, rows = curves(folder), read_csv_rows(folder / "conditions.csv")
    assert {row["condition"] for row in rows} == set(runs)
    for row in rows:
        each = runs[row["condition"]].values()
        assert float(row["pass_at_1"]) == pytest.approx(np.mean([end(curve) for curve in each]), abs=1e-12)
        assert float(row["area"]) == pytest.approx(np.mean([area(curve) for curve in each]), abs=1e-12)


@study
def test_a_table_has_the_verdicts_of_the_report_and_both_measures(folder):
    rows, summary = read_csv_rows(folder / "comparisons.csv"), declared(folder).get("summary", "end")
    for row, comparison in zip(rows, compare_campaign(folder.name), strict=True):
        assert name_verdict(comparison) in (row["verdict"].partition(":")[0], "undecidable")
        lead = comparison.declared
        assert lead.estimate.mean == pytest.approx(100 * float(row["difference"]), abs=1e-9)
        assert (lead.estimate.low, lead.estimate.high) == pytest.approx([100 * end for end in ends(row)], rel=1e-6)
        assert lead.p == pytest.approx(float(row["p_holm"]), abs=DRAWN if int(row["pairs"]) > ENUMERATED else 1e-6)
        assert comparison.area.estimate.mean == pytest.approx(100 * float(row["area_difference"]), abs=1e-9)
    assert f"| verdict ({summary}) |" in render_lead_table(folder.name)


@study
def test_intervals_are_by_the_rule_of_todays_reports(folder):
    rows, pairs = read_csv_rows(folder / "comparisons.csv"), pair_campaign_values(folder.name)
    assert [correct_interval(row, pair) for row, pair in zip(rows, pairs, strict=True)] == rows


@study
def test_a_page_names_every_campaign_and_shows_whole_tables(folder):
    page = (folder.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"`{folder.name}`" in page
    for digits in (1, 2):
        lines = render_lead_table(folder.name, digits).splitlines()[2:]
        shown = [line for line in lines if line in page]
        assert shown in ([], lines)
