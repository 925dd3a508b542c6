"""Verdicts of several campaigns, corrected together."""

import csv

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from rlcredit.report.evidence import read_campaign_evidence
from rlcredit.report.report_command import run_report_command
from rlcredit.report.study import compare_over_campaigns, count_arm_collapses, pool_comparisons
from tests.rlcredit.report.test_report import collapsing

OTHERS = ("same", "good", "bad")


def test_all_comparisons_of_a_study_are_corrected_together(left):
    campaigns = [left("first"), left("second", conditions={name: (f"{name}.yaml",) for name in ("base", "good")})]
    compared = compare_over_campaigns([read_campaign_evidence(each.write()) for each in campaigns])
    assert [(each.campaign, each.comparison.condition) for each in compared] == [
        *(("first", name) for name in OTHERS),
        ("second", "good"),
    ]
    pairs = [*((campaigns[0], name) for name in OTHERS), (campaigns[1], "good")]
    raw = [stats.ttest_rel(campaign.values(name), campaign.values("base")).pvalue for campaign, name in pairs]
    assert [each.overall.p for each in compared] == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-9)
    assert [each.comparison.p for each in compared[:3]] == pytest.approx(
        multipletests(raw[:3], method="holm")[1], rel=1e-9
    )
    assert compared[3].comparison.p == pytest.approx(raw[3], rel=1e-9)
    assert all(each.overall.p >= each.comparison.p for each in compared)


def test_each_campaign_keeps_its_margin(left):
    campaigns = [left("narrow", effect=0.001), left("wide", effect=0.3)]
    compared = compare_over_campaigns([read_campaign_evidence(each.write()) for each in campaigns])
    good = [each.overall.verdict for each in compared if each.comparison.condition == "good"]
    assert good == ["better", "equivalent within 30 pp"]


def test_what_a_campaign_cannot_test_counts_and_leaves_the_rest_open(left):
    whole, partial = left("whole"), left("partial")
    del partial.ledger["cells"]["good/seed3"]
    compared = compare_over_campaigns([read_campaign_evidence(each.write()) for each in (whole, partial)])
    waiting = next(each for each in compared if each.campaign == "partial" and each.comparison.condition == "good")
    assert waiting.overall.verdict == waiting.comparison.verdict == "open: 7 of 8 pairs"
    assert waiting.overall.p is None
    good = next(each for each in compared if each.campaign == "whole" and each.comparison.condition == "good")
    assert good.overall.verdict == "better"


def test_the_command_writes_one_table_of_several_campaigns(left, tmp_path, capsys):
    roots = [str(left(name).write()) for name in ("first", "second")]
    assert run_report_command([*roots, "--out", str(tmp_path / "study")]) == 0
    said = capsys.readouterr().out
    assert "second: good against base: better; over the study: better\n" in said
    with (tmp_path / "study" / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict_study"] for row in rows if row["condition"] == "bad"] == ["worse", "worse"]
    assert "# 6 comparisons of 2 campaigns" in (tmp_path / "study" / "study.md").read_text()
    assert not (tmp_path / "first" / "report").exists()


def test_campaigns_of_the_same_arms_are_pooled_pair_by_pair_and_corrected(left):
    campaigns = [left("first"), left("second", conditions={name: (f"{name}.yaml",) for name in ("base", "good")})]
    campaigns += [left("third", seeds=tuple(range(10, 18)))]
    compared = compare_over_campaigns([read_campaign_evidence(each.write()) for each in campaigns])
    pooled = {each.condition: each for each in pool_comparisons(compared)}
    assert {name: each.campaigns for name, each in pooled.items()} == {
        "same": ("first", "third"),
        "good": ("first", "second", "third"),
        "bad": ("first", "third"),
    }
    lead = pooled["good"].leads["end"]
    rows = [campaign.values("good") - campaign.values("base") for campaign in campaigns]
    assert lead.differences == pytest.approx([difference for row in rows for difference in row])
    tests = [stats.ttest_1samp(each.leads["area"].differences, 0).pvalue for each in pooled.values()]
    corrected = multipletests(tests, method="holm")[1]
    assert [each.leads["area"].p for each in pooled.values()] == pytest.approx(corrected, rel=1e-9)


def test_collapses_of_an_arm_are_counted_over_all_campaigns(left, tmp_path, capsys):
    campaigns = [left("first"), left("second")]
    collapsing(campaigns[0], "same", 2)
    collapsing(campaigns[1], "same", 1, 5)
    roots = [str(each.write()) for each in campaigns]
    evidence = [read_campaign_evidence(each.root) for each in campaigns]
    arms = {arm["condition"]: arm for arm in count_arm_collapses(evidence)}
    assert (arms["same"]["collapsed"], arms["same"]["runs"], arms["base"]["collapsed"]) == (3, 16, 0)
    assert run_report_command([*roots, "--out", str(tmp_path / "study")]) == 0
    with (tmp_path / "study" / "collapses.csv").open() as file:
        rows = {row["condition"]: row for row in csv.DictReader(file)}
    exact = stats.binomtest(3, 16).proportion_ci(0.95, method="exact")
    assert (float(rows["same"]["low"]), float(rows["same"]["high"])) == pytest.approx(tuple(exact))
    assert "| same | 2 | 3 of 16 | 4.0 to 45.6 % |" in (tmp_path / "study" / "study.md").read_text()
    with (tmp_path / "study" / "pooled.csv").open() as file:
        assert [(row["condition"], row["pairs"]) for row in csv.DictReader(file)][1] == ("good", "16")


def test_a_campaign_counts_once(left, capsys):
    root = str(left().write())
    assert run_report_command([root, root]) == 2
    assert "made_up is named twice" in capsys.readouterr().err
