"""A report says what the runs say, in every form, and refuses what cannot be compared."""

import csv
import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from mlflow import MlflowClient
from scipy import stats
from statsmodels.stats.multitest import multipletests

from rlcredit.campaign.campaign_record import lock_campaign
from rlcredit.campaign.declaration import ComparisonFamily, DeclaredBudget, HeldOutChoice, ReachedLevel
from rlcredit.campaign.execution import refuse_unlike_metrics
from rlcredit.campaign.metric_definition import MetricDefinition, list_metric_differences
from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.report.condition_comparison import compare_conditions
from rlcredit.report.condition_summary import decompose_variance, summarise_conditions
from rlcredit.report.evidence import read_campaign_evidence
from rlcredit.report.pictures import draw_curves
from rlcredit.report.report_command import find_campaign_folder, run_report_command
from rlcredit.report.report_page import write_report
from rlcredit.report.report_tables import make_config_table, make_token_table
from rlcredit.report.run_measures import summarise_run
from rlcredit.report.training_curves import find_campaign_mlflow_run, load_training_curves
from rlcredit.report.verdict_text import list_comparison_facts
from rlcredit.statistics.paired_comparison import seeds_to_decide
from rlcredit.statistics.power import t_test_power
from rlcredit.statistics.sign_flip import sign_flip_interval
from rlcredit.statistics.t_test import paired_t_test
from tests.browser import BROWSER, find_overflow
from tests.rlcredit.report.conftest import WORTH


def test_verdicts_are_those_of_scipy_and_statsmodels(left):
    campaign = left()
    found = compare_conditions(read_campaign_evidence(campaign.write()))
    assert [each.condition for each in found] == ["same", "good", "bad"]
    base = campaign.values("base")
    tests = [stats.ttest_rel(campaign.values(each.condition), base) for each in found]
    corrected = multipletests([test.pvalue for test in tests], method="holm")[1]
    for each, test, p in zip(found, tests, corrected, strict=True):
        np.testing.assert_allclose(each.differences, campaign.values(each.condition) - base, atol=1e-12)
        assert each.p == pytest.approx(p, rel=1e-9)
        assert each.test.interval[:2] == pytest.approx(tuple(test.confidence_interval(0.95)), rel=1e-9)
        assert each.sign_flip == pytest.approx(
            stats.permutation_test((each.differences,), np.mean, permutation_type="samples").pvalue
        )
    assert [each.verdict for each in found] == ["equivalent within 2 pp", "better", "worse"]
    assert [each.improves for each in found][1:] == [1.0, 0.0]


def test_equivalence_is_two_one_sided_tests_corrected_for_the_family(left):
    campaign = left()
    found = compare_conditions(read_campaign_evidence(campaign.write()))
    ps = [
        max(
            stats.ttest_1samp(each.differences + 0.02, 0, alternative="greater").pvalue,
            stats.ttest_1samp(each.differences - 0.02, 0, alternative="less").pvalue,
        )
        for each in found
    ]
    expected = multipletests(ps, method="holm")[1]
    assert [each.p_equivalence for each in found] == pytest.approx(list(expected), rel=1e-9)


def test_the_interval_for_new_questions_is_the_wider_one(left):
    good = compare_conditions(read_campaign_evidence(left().write()))[1]
    assert good.general.high - good.general.low > good.test.interval.high - good.test.interval.low
    assert good.general.low < 0.0925 < good.general.high, "the true difference: 0.1, less what is cut at one"


def test_where_a_run_collapsed_both_intervals_are_as_wide_as_that_of_the_deciding_test(left):
    campaign = left()
    right = np.zeros((256, 4))
    right[:80] = 1
    found = {"val/pass_at_1": right.mean(), "val/pass_at_k": right.mean(), "val/entropy": 0.1}
    campaign.change(
        "same/seed2", 100, right=right.astype(int).tolist(), metrics=found | {"val/completion_length": 30.0}
    )
    campaign.ledger["cells"]["same/seed2"]["metrics"]["100"] = found | {"val/completion_length": 30.0}
    same = compare_conditions(read_campaign_evidence(campaign.write()))[0]
    assert same.collapses == (1, 0)
    flipped, students = sign_flip_interval(same.differences), paired_t_test(same.differences).interval
    assert same.test.interval[:2] == (min(flipped.low, students.low), max(flipped.high, students.high))
    assert same.general.low <= same.test.interval.low < students.low
    assert same.general.high >= same.test.interval.high


def test_all_families_of_a_campaign_are_corrected_together(left, two_families):
    campaign = left(families=two_families)
    found = {each.condition: each for each in compare_conditions(read_campaign_evidence(campaign.write()))}
    pairs = [("same", "base"), ("good", "base"), ("bad", "good")]
    ps = [stats.ttest_rel(campaign.values(one), campaign.values(other)).pvalue for one, other in pairs]
    for (name, _), p in zip(pairs, multipletests(ps, method="holm")[1], strict=True):
        assert found[name].p == pytest.approx(p, rel=1e-9)


def test_no_verdict_before_all_pairs_are_there(left):
    campaign = left()
    campaign.ledger["cells"]["good/seed3"]["state"] = "failed"
    evidence = read_campaign_evidence(campaign.write())
    same, good, bad = compare_conditions(evidence)
    assert good.verdict == "open: 7 of 8 pairs"
    assert good.p is good.p_equivalence is good.sign_flip is None, "a look before all pairs are there is no test"
    assert evidence.absent == {"good/seed3": "failed"}
    # What is decided as if the third comparison had p = 1 stays decided whatever it turns out to be.
    ps = [stats.ttest_rel(campaign.values(name), campaign.values("base")).pvalue for name in ("same", "bad")]
    assert [same.p, bad.p] == pytest.approx(multipletests([*ps, 1.0], method="holm")[1][:2].tolist(), rel=1e-9)
    assert (same.verdict, bad.verdict) == ("equivalent within 2 pp", "worse")


def test_what_is_not_decided_waits_for_the_rest_of_the_campaign(left):
    campaign = left(effect=0.002)
    campaign.ledger["cells"]["good/seed3"]["state"] = "failed"
    assert (
        compare_conditions(read_campaign_evidence(campaign.write()))[0].verdict
        == "open: other comparisons of the campaign lack pairs"
    )


def collapsing(campaign, condition, *seeds):
    """Let runs answer hardly anything after the last step."""
    for seed in seeds:
        right = (campaign.right[condition, seed] & (np.random.default_rng(seed).random((256, 4)) < 0.2)).astype(int)
        metrics = {"val/pass_at_1": right.mean(), "val/pass_at_k": right.any(-1).mean()}
        cell = f"{condition}/seed{seed}"
        whole = {**campaign.ledger["cells"][cell]["metrics"]["100"], **metrics}
        campaign.ledger["cells"][cell]["metrics"]["100"] = whole
        campaign.change(cell, 100, right=right.tolist(), metrics=whole)


def test_collapses_are_counted_and_no_mean_decides_beside_them(left):
    campaign = left()
    collapsing(campaign, "same", 2)
    collapsing(campaign, "bad", 1, 5)
    evidence = read_campaign_evidence(campaign.write())
    same, good, bad = compare_conditions(evidence)
    assert [each.collapses for each in (same, good, bad)] == [(1, 0), (0, 0), (2, 0)]
    assert same.verdict == "undecided: 1 of 8 runs collapsed, 0 of the baseline's"
    assert good.verdict == "better"
    assert (bad.verdict, bad.p) == ("worse", pytest.approx(2 * bad.sign_flip)), "all eight pairs have one sign"
    assert same.p_equivalence == bad.p_equivalence == 1
    assert [each.collapsed for each in summarise_conditions(evidence)] == [0, 1, 0, 2]
    assert run_report_command([str(campaign.root)]) == 0
    page = (campaign.root / "report" / "report.md").read_text()
    assert "| same | 8 | 1 (< 47%) |" in page
    assert "| base | 8 | 0 (< 31%) |" in page


def test_collapses_leave_comparisons_that_no_data_could_decide(left):
    campaign = left(seeds=tuple(range(6)))
    collapsing(campaign, "same", 2)
    collapsing(campaign, "bad", 1)
    same, good, bad = compare_conditions(read_campaign_evidence(campaign.write()))
    assert good.verdict == "better"
    for each in (same, bad):  # 2 / 2^6 = 0.031, and 0.05 / 2 is left to each
        assert each.verdict == (
            "could not decide: 1 of 6 runs collapsed, 0 of the baseline's, and 6 pairs reach p = 0.031 at best, and "
            "0.025 was needed"
        )
        assert each.detectable is None


def test_both_measures_are_corrected_and_the_declared_one_is_marked(left, capsys):
    campaign = left()
    evidence = read_campaign_evidence(campaign.write())
    found = compare_conditions(evidence)
    tests = [stats.ttest_1samp(each.leads["area"].differences, 0) for each in found]
    corrected = multipletests([test.pvalue for test in tests], method="holm")[1]
    assert [each.leads["area"].p for each in found] == pytest.approx(list(corrected), rel=1e-9)
    assert [each.leads["end"].p for each in found] == [each.p for each in found]
    assert run_report_command([str(campaign.root)]) == 0
    end, area = (100 * found[1].leads[measure].test.difference for measure in ("end", "area"))
    for text in (
        capsys.readouterr().out,
        *((campaign.root / "report" / f"report.{form}").read_text() for form in FORMS),
    ):
        assert f"end (declared) {end:+.2f} pp" in text
        assert f"area {area:+.2f} pp" in text


FORMS = ("html", "md")


def with_curves(evidence, curves):
    """Let all runs of some conditions have these curves."""
    for (condition, _), run in evidence.runs.items():
        for step, height in curves.get(condition, {}).items():
            run.metrics[step]["val/pass_at_1"] = height
    return compare_conditions(evidence)


def test_where_no_lead_over_the_margin_was_possible_the_verdict_says_so(left):
    near = {0: 0.5, 50: 0.95, 100: 0.95}
    curves = {"base": near, "same": near, "good": {0: 0.5, 50: 0.96, 100: 0.97}, "bad": near}
    same, good, _ = with_curves(read_campaign_evidence(left(summary="area").write()), curves)
    # A run at 0.97 from step 50 on leads by 0.02 there: 0.02 x (50 / 2 + 50) / 100 = 1.5 points.
    assert same.headroom.by_area == pytest.approx(0.015)
    assert same.verdict == "no room: a lead of 1.5 pp at most was possible; it is not 2 pp behind"
    assert good.verdict == same.verdict
    narrow, *_ = with_curves(read_campaign_evidence(left("narrow", summary="area", effect=0.01).write()), curves)
    assert narrow.verdict == "equivalent within 1 pp"
    end, *_ = with_curves(read_campaign_evidence(left("end").write()), curves)
    assert end.verdict == "equivalent within 2 pp"


def test_an_undecided_comparison_names_the_difference_it_would_have_found(left, capsys):
    evidence = read_campaign_evidence(left(effect=0.002).write())
    found = with_differences(evidence, mean=0.0036, deviation=0.004)
    power = t_test_power(found[0].detectable / 0.004, 8, conditions=1, alpha=0.05 / 3)
    assert power == pytest.approx(0.8, abs=1e-6)
    assert any("would have been found with a power of 80 %" in fact for fact in list_comparison_facts(found[0]))


def test_a_verdict_stands_beside_the_tokens_of_all_kinds(left, tmp_path):
    evidence = read_campaign_evidence(left(cost=COST).write())
    good = compare_conditions(evidence)[1]
    # 20,000 and 10,000 tokens, and the mean of the seeds 0 to 7.
    assert good.costs["decoded"].ratio == pytest.approx(20_003.5 / 10_003.5)
    assert good.costs["forward"].ratio is None
    *_, tokens = list_comparison_facts(good)
    assert "20,004 decoded (2.00), 1,000 read (1.00), 10,000 trained on (1.00)" in tokens
    write_report(evidence, {}, tmp_path / "out")
    with (tmp_path / "out" / "comparisons.csv").open() as file:
        row = list(csv.DictReader(file))[1]
    assert (float(row["decoded"]), row["forward_ratio"]) == (20_003.5, "")


def test_a_condition_whose_rate_nobody_tuned_says_so_wherever_it_is_named(left, capsys):
    campaign = left(rates_from={"base": "rates", "good": "rates"})
    assert run_report_command([str(campaign.write())]) == 0
    for text in (
        capsys.readouterr().out,
        *((campaign.root / "report" / f"report.{form}").read_text() for form in FORMS),
    ):
        assert "bad (rate not tuned)" in text
        assert "good (rate not tuned)" not in text
    rows = list(csv.DictReader((campaign.root / "report" / "comparisons.csv").read_text().splitlines()))
    assert [row["rate_tuned_in"] for row in rows] == ["", "rates", ""]


def test_a_killed_run_is_not_running(left):
    campaign = left()
    campaign.ledger["cells"]["good/seed3"]["state"] = "running"
    root = campaign.write()
    assert read_campaign_evidence(root).absent == {"good/seed3": "interrupted"}
    with lock_campaign(root):
        assert read_campaign_evidence(root).absent == {"good/seed3": "running"}


def test_missing_and_refused_runs_are_told_apart(left):
    campaign = left()
    campaign.ledger["cells"]["bad/seed0"]["differences"] = ["model.seed: declared 0, executed 1"]
    for name in ("good/seed3", "good/seed4"):
        campaign.ledger["cells"].pop(name)
    run_report_command([str(campaign.write())])
    for name in ("report.html", "report.md"):
        assert "2 are missing, 1 refused" in (campaign.root / "report" / name).read_text()


def test_where_every_answer_is_right_the_interval_is_that_of_so_many_questions(left):
    campaign = left()
    for seed in range(8):
        cell, metrics = f"good/seed{seed}", {"val/pass_at_1": 1.0, "val/pass_at_k": 1.0}
        whole = {**campaign.ledger["cells"][cell]["metrics"]["100"], **metrics}
        campaign.ledger["cells"][cell]["metrics"]["100"] = whole
        campaign.change(cell, 100, right=[[1] * 4] * 256, metrics=whole)
    good = {each.condition: each for each in summarise_conditions(read_campaign_evidence(campaign.write()))}[
        "good"
    ].pass_at_1
    assert good.mean == 1
    assert good.interval[:2] == pytest.approx(tuple(stats.binomtest(256, 256).proportion_ci(0.95, "exact")))


def test_a_run_that_differs_from_what_was_declared_is_in_no_number(left, capsys, tmp_path):
    campaign = left()
    campaign.ledger["cells"]["same/seed0"]["differences"] = ["model.lr: declared 0.1, executed 0.2"]
    assert run_report_command([str(campaign.write())]) == 1
    assert "refused: same/seed0: model.lr: declared 0.1, executed 0.2" in capsys.readouterr().out
    rows = list(csv.DictReader((campaign.root / "report" / "runs.csv").read_text().splitlines()))
    assert len(rows) == 31 * 3
    assert ("same", "0") not in {(row["condition"], row["seed"]) for row in rows}
    assert "not executed as declared" in (campaign.root / "report" / "report.html").read_text()


def test_files_that_are_not_those_of_the_ledger_are_refused(left):
    campaign = left()
    campaign.write()
    campaign.change("good/seed1", 100, right=sorted(campaign.right["good", 1].astype(int).tolist()))
    (campaign.root / "good" / "seed2" / "held_out" / "step_000050.json").write_text("{")
    (campaign.root / "good" / "seed3" / "held_out" / "step_000000.json").unlink()
    refused = read_campaign_evidence(campaign.write(record=False)).refused
    assert refused == {
        f"good/seed{seed}": [f"held_out/step_000{step} is not the file that the ledger has recorded"]
        for seed, step in ((1, "100.json"), (2, "050.json"), (3, "000.json"))
    }


def test_verdicts_that_contradict_the_metrics_are_refused(left):
    campaign = left()
    campaign.change("good/seed1", 50, right=[[1] * 4] * 256)
    campaign.change("good/seed2", 100, right=[[1, 1, 1, 0]] * 256)
    refused = read_campaign_evidence(campaign.write()).refused
    told = r"step 50: val/pass_at_1 is 0\.\d+ in the metrics, 1\.000000 in the verdicts"
    assert re.fullmatch(told, refused["good/seed1"][0])
    assert any("val/pass_at_k" in reason for reason in refused["good/seed2"])


def test_a_metric_that_is_no_number_is_refused_and_breaks_nothing(left):
    campaign = left()
    metrics = campaign.ledger["cells"]["good/seed1"]["metrics"]["50"]
    campaign.change("good/seed1", 50, metrics={**metrics, "val/pass_at_1": float("nan")})
    metrics = campaign.ledger["cells"]["good/seed2"]["metrics"]["50"]
    campaign.change("good/seed2", 50, metrics={**metrics, "val/entropy": float("nan")})
    assert run_report_command([str(campaign.write())]) == 1
    assert (
        "step 50: val/pass_at_1 is nan in the metrics" in read_campaign_evidence(campaign.root).refused["good/seed1"][0]
    )


def test_other_questions_are_not_compared(left):
    campaign = left()
    campaign.change("same/seed0", 100, questions_sha256="3" * 64)
    evidence = read_campaign_evidence(campaign.write())
    assert evidence.refused == {"same/seed1": ["its questions or evaluations are not those of seed 0"]} | {
        f"same/seed{seed}": ["its questions or evaluations are not those of seed 0"] for seed in range(2, 8)
    }
    campaign = left("all")
    for seed in range(8):
        campaign.change(f"same/seed{seed}", 100, numbers=list(range(1000, 1256)))
    evidence = read_campaign_evidence(campaign.write())
    assert compare_conditions(evidence)[0].verdict == "not compared: other questions or evaluations"
    assert decompose_variance(evidence) == {}
    assert run_report_command([str(campaign.root)]) == 1


def changed(campaign, condition, where, value):
    *path, last = where.split(".")
    place = campaign.ledger["configs"][condition]
    for key in path:
        place = place[key]
    place[last] = value


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("model.validation.temperature", 1.0, "settings.model.validation.temperature: good 1.0, base 0.7"),
        ("model.validation.completions", 2, "settings.model.validation.completions: good 2, base 4"),
        ("model.pass_k", 2, "settings.model.pass_k: good 2, base 4"),
        ("data.class_path", "MATH", "settings.data.class_path: good 'MATH', base 'ReasoningGym'"),
        ("data.init_args.name", "sums", "settings.data.init_args.name: good 'sums', base 'chain_sum'"),
        ("data.init_args.config", {"x": 1}, "settings.data.init_args.config.x: good 1, base nothing"),
        ("data.init_args.instruction", "!", "settings.data.init_args.instruction: good '!', base nothing"),
        ("data.init_args.solved_at", 0.5, "settings.data.init_args.solved_at: good 0.5, base nothing"),
        ("data.init_args.validation_size", 9, "settings.data.init_args.validation_size: good 9, base nothing"),
    ],
)
def test_metrics_of_different_definition_are_not_compared(left, where, value, said):
    campaign = left()
    changed(campaign, "good", where, value)
    evidence = read_campaign_evidence(campaign.write())
    verdicts = {each.condition: each.verdict for each in compare_conditions(evidence)}
    assert verdicts["good"] == f"not compared: {said}"
    assert verdicts["bad"] == "worse"
    assert decompose_variance(evidence) == {}
    with pytest.raises(ValueError, match=r"val/pass_at_1 differs between conditions that are compared: settings"):
        refuse_unlike_metrics(evidence.declaration, campaign.ledger["configs"])


@pytest.mark.parametrize("name", ["prompts_per_step", "train_size", "validation_batch", "train", "train_split"])
def test_what_touches_training_only_is_no_part_of_a_held_out_metric(left, name):
    campaign = left()
    changed(campaign, "good", f"data.init_args.{name}", 4)
    assert compare_conditions(read_campaign_evidence(campaign.write()))[1].verdict == "better"
    refuse_unlike_metrics(campaign.declaration, campaign.ledger["configs"])


def test_running_means_and_last_steps_are_two_metrics():
    running = MetricDefinition("solve rate", "all training batches so far")
    last = MetricDefinition("solve rate", "the last training batch")
    assert list_metric_differences(running, last, ("4B", "30B")) == [
        "over: 4B 'all training batches so far', 30B 'the last training batch'"
    ]
    assert list_metric_differences(running, running, ("a", "b")) == []


def test_a_condition_by_itself(left):
    campaign = left()
    found = {each.condition: each for each in summarise_conditions(read_campaign_evidence(campaign.write()))}
    good = campaign.values("good")
    assert found["good"].pass_at_1.mean == pytest.approx(good.mean())
    assert found["good"].pass_at_1.interval.low < good.mean() < found["good"].pass_at_1.interval.high
    assert found["good"].iqm == pytest.approx(stats.trim_mean(good, 0.25))
    assert found["good"].deviation == pytest.approx(good.std(ddof=1))
    right = np.stack([campaign.right["good", seed] for seed in range(8)])
    assert found["good"].pass_at_k.mean == pytest.approx(right.any(-1).mean()), "pass@4 of four samples"
    assert 0.6 < found["good"].area.mean < 0.8, "from 0.5 to 0.9"


def test_few_seeds_have_no_interval_for_new_questions_and_one_seed_has_none(left):
    few = read_campaign_evidence(left("few", seeds=(0, 1)).write())
    assert compare_conditions(few)[1].general is None
    assert summarise_conditions(few)[0].pass_at_1.interval is not None
    assert compare_conditions(few)[2].effect is None, "of two pairs Hedges' g is zero, whatever they say"
    one = read_campaign_evidence(left("one", seeds=(0,)).write())
    assert compare_conditions(one)[1].verdict == "could not decide: 1 pair cannot reach a verdict"
    assert summarise_conditions(one)[0].pass_at_1.interval is None


def test_runs_that_changed_nothing_decide_nothing(left):
    evidence = read_campaign_evidence(left().write())
    for key, run in evidence.runs.items():
        metrics = {place: dict.fromkeys(values, 0.5) for place, values in run.metrics.items()}
        evidence.runs[key] = dataclasses.replace(run, metrics=metrics)
    verdicts = {comparison.verdict for comparison in compare_conditions(evidence)}
    assert verdicts == {"could not decide: no run changed its score"}


@pytest.mark.parametrize(("seeds", "decided"), [(5, False), (6, True)])
def test_five_pairs_reach_no_verdict(left, seeds, decided):
    found = compare_conditions(read_campaign_evidence(left(seeds=tuple(range(seeds))).write()))[1]
    assert found.test.p < 0.001
    assert found.verdict == ("better" if decided else "could not decide: 5 pairs cannot reach a verdict")


def with_differences(evidence, mean, deviation):
    """Let every condition differ from the baseline by the same eight numbers; return the comparisons."""
    noise = np.random.default_rng(3).normal(size=8)
    noise = mean + deviation * (noise - noise.mean()) / noise.std(ddof=1)
    for condition in ("same", "good", "bad"):
        for seed, difference in enumerate(noise):
            base = evidence.runs["base", seed].metrics[100]["val/pass_at_1"]
            evidence.runs[condition, seed].metrics[100]["val/pass_at_1"] = base + difference
    return compare_conditions(evidence)


def test_a_verdict_is_of_the_corrected_p(left):
    found = with_differences(read_campaign_evidence(left(effect=0.002).write()), mean=0.0036, deviation=0.004)
    alone = stats.ttest_1samp(found[0].differences, 0).pvalue
    assert 0.02 < alone < 0.05, "significant alone, and not among three"
    assert found[0].p == pytest.approx(3 * alone)
    needed = seeds_to_decide(0.004, 0.002, alpha=0.05 / 3)
    assert [each.verdict for each in found] == [f"undecided: a new campaign needs {needed} seeds"] * 3
    assert needed != seeds_to_decide(0.004, 0.002)


def test_equivalence_too_is_of_the_corrected_p(left):
    found = with_differences(read_campaign_evidence(left(effect=0.02).write()), mean=0.0, deviation=0.0255)
    alone = stats.ttest_1samp(found[0].differences, -0.02, alternative="greater").pvalue
    assert 0.02 < alone < 0.05, "equivalent alone, and not among three"
    assert found[0].p_equivalence == pytest.approx(3 * alone)
    assert all(each.verdict.startswith("undecided") for each in found)


def test_rounding_is_no_spread(left):
    evidence = read_campaign_evidence(left().write())
    for seed in range(8):
        base = evidence.runs["base", seed].metrics[100]["val/pass_at_1"]
        evidence.runs["same", seed].metrics[100]["val/pass_at_1"] = base + 5 / 256
    same = compare_conditions(evidence)[0]
    assert same.test.standard_error == 0
    assert same.effect is None


def test_runs_that_are_the_same_are_equivalent(left):
    campaign = left()
    for seed in range(8):
        copied = campaign.ledger["cells"][f"base/seed{seed}"]
        campaign.ledger["cells"][f"same/seed{seed}"] = copied
        shutil.rmtree(campaign.root / "same" / f"seed{seed}")
        shutil.copytree(campaign.root / "base" / f"seed{seed}", campaign.root / "same" / f"seed{seed}")
    same = compare_conditions(read_campaign_evidence(campaign.write()))[0]
    assert (same.verdict, same.p, same.effect) == ("equivalent within 2 pp", 1.0, None)


def test_variance_comes_from_where_it_was_put(left):
    found = decompose_variance(read_campaign_evidence(left().write()))
    shares = found["after step 100"].shares
    assert set(shares) == {"prompt", "arm", "run", "residual"}
    variances = found["after step 100"].variances
    assert variances["arm"] == pytest.approx(np.var([0.8, 0.8, 0.9, 0.7], ddof=1), rel=0.3)
    assert variances["prompt"] == pytest.approx(0.01, rel=0.35), "a deviation of 0.1, some of it cut at one"
    assert variances["run"] < 0.0005
    assert found["all evaluations"].shares["step"] > 0.1


def test_everything_is_written_and_the_page_needs_nothing_else(left, two_families, capsys):
    campaign = left(families=two_families)
    assert run_report_command([str(campaign.write())]) == 0
    out = campaign.root / "report"
    written = {path.name for path in out.iterdir()}
    assert {"report.html", "report.md", "runs.csv", "comparisons.csv", "conditions.csv", "variance.csv"} <= written
    html, markdown = ((out / name).read_text() for name in ("report.html", "report.md"))
    assert not re.search(r"(src|href)=.(?!data:)|url\(|@import|<script", html)
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", markdown):
        assert (out / name).read_bytes()[:4] == b"\x89PNG"
    for text in (html, markdown, capsys.readouterr().out):
        assert "better" in text
        assert "worse" in text
    rows = list(csv.DictReader((out / "comparisons.csv").read_text().splitlines()))
    for row, each in zip(rows, compare_conditions(read_campaign_evidence(campaign.root)), strict=True):
        numbers = {
            "pairs": 8,
            "collapsed": 0,
            "baseline_collapsed": 0,
            "difference": each.differences.mean(),
            "low": each.test.interval.low,
            "high": each.test.interval.high,
            "new_questions_low": each.general.low,
            "new_questions_high": each.general.high,
            "t": each.test.statistic,
            "p_holm": each.p,
            "p_sign_flip": each.sign_flip,
            "p_equivalence_holm": each.p_equivalence,
            "hedges_g": each.effect.g,
            "hedges_g_low": each.effect.interval.low,
            "hedges_g_high": each.effect.interval.high,
            "probability_of_improvement": each.improves,
            "room_by_area": each.headroom.by_area,
            "room_at_first": each.headroom.at_first,
        }
        for measure, lead in each.leads.items():
            numbers |= {f"{measure}_difference": lead.test.difference, f"p_{measure}_holm": lead.p}
            numbers |= {f"{measure}_low": lead.test.interval.low, f"{measure}_high": lead.test.interval.high}
        texts = {"family": each.family, "baseline": each.baseline, "condition": each.condition, "verdict": each.verdict}
        texts |= {"measure": "end", "rate_tuned_in": "", "detectable": ""}
        texts |= dict.fromkeys([*TOKEN_KINDS, *(f"{kind}_ratio" for kind in TOKEN_KINDS)], "")
        assert {key: row[key] for key in texts} == texts
        assert {key: float(row[key]) for key in numbers} == pytest.approx(numbers)
        assert set(row) == {*numbers, *texts}
    assert float(rows[1]["area_difference"]) > 0


def test_a_second_report_leaves_nothing_of_the_first(left):
    campaign = left()
    run_report_command([str(campaign.write())])
    out = campaign.root / "report"
    assert (out / "variance.csv").is_file()
    for seed in range(7):
        campaign.ledger["cells"][f"good/seed{seed}"]["differences"] = ["model.lr: declared 1, executed 2"]
    run_report_command([str(campaign.write())])
    assert not (out / "variance.csv").exists()


def test_a_folder_of_something_else_is_no_place_for_a_report(left, tmp_path, capsys):
    kept, campaign = tmp_path / "kept", str(left().write())
    kept.mkdir()
    (kept / "mine.csv").write_text("1")
    assert run_report_command([campaign, f"--out={kept}"]) == 2
    assert (
        capsys.readouterr().err
        == f"error: --out: {kept} holds other files, for instance mine.csv. Name a new folder.\n"
    )
    assert [path.name for path in kept.iterdir()] == ["mine.csv"]
    assert run_report_command([campaign, f"--out={kept / 'mine.csv'}"]) == 2
    assert "is a file. Name a new folder." in capsys.readouterr().err


def test_sources_and_configurations_are_told_apart(left):
    campaign = left()
    campaign.ledger["cells"]["good/seed0"]["versions"]["git_commit"] = "1" * 40 + "-dirty"
    changed(campaign, "bad", "data.init_args.prompts_per_step", 4)
    table = make_config_table(read_campaign_evidence(campaign.write()))
    rows = {row[0]: row for row in table.rows}
    assert rows["good"][3] == "111111111111, 111111111111-dirty"
    assert rows["base"][2] == rows["good"][2] != rows["bad"][2]
    run_report_command([str(campaign.root)])
    assert "Runs of several versions" in (campaign.root / "report" / "report.html").read_text()


def test_names_are_text_in_the_page(left):
    campaign = left(families={"a & b's": ComparisonFamily("base", ("good",))})
    run_report_command([str(campaign.write())])
    assert "a &amp; b&#39;s" in (campaign.root / "report" / "report.html").read_text()


def test_training_curves_are_those_of_the_run_that_finished(left, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"  # MLflow keeps one store per address and process
    campaign = left(conditions={"base": ("a.yaml",), "good": ("b.yaml",)}, seeds=(0,))
    logger = {"class_path": "lightning.pytorch.loggers.MLFlowLogger"}
    logger["init_args"] = {"experiment_name": "tiny", "tracking_uri": uri}
    for config in campaign.ledger["configs"].values():
        config["trainer"] = {"logger": logger}
    client = MlflowClient(uri)
    experiment = client.create_experiment("tiny")
    parent = client.create_run(experiment, run_name="made_up").info.run_id
    campaign.ledger["mlflow_run"] = parent
    for start, (status, value) in enumerate([("KILLED", 0.1), ("FINISHED", 0.2), ("FINISHED", 0.3)]):
        tags = {"mlflow.parentRunId": parent, "cell": "good/seed0"}
        run = client.create_run(experiment, start_time=1000 + start, tags=tags).info.run_id
        for step in range(3):
            client.log_metric(run, "train/zero_variance", value + step, step=step)
        client.set_terminated(run, status)
    evidence = read_campaign_evidence(campaign.write())
    assert load_training_curves(evidence, find_campaign_mlflow_run(evidence)) == {
        ("good", 0): {"train/zero_variance": {1: 0.3, 2: 1.3, 3: 2.3}}
    }
    campaign.ledger["mlflow_run"] = "0" * 32
    strange = read_campaign_evidence(campaign.write())
    assert load_training_curves(strange, find_campaign_mlflow_run(strange)) == {}, "a store of somebody else's runs"
    assert run_report_command([str(campaign.root)]) == 0


def test_a_relative_address_is_one_of_the_working_directory_whoever_asked_before(left, tmp_path, monkeypatch):
    campaign = left(conditions={"base": ("a.yaml",), "good": ("b.yaml",)}, seeds=(0,))
    logger = {"class_path": "lightning.pytorch.loggers.MLFlowLogger"}
    logger["init_args"] = {"experiment_name": "tiny", "tracking_uri": "sqlite:///mlflow.db"}
    for config in campaign.ledger["configs"].values():
        config["trainer"] = {"logger": logger}
    for name in ("one", "two"):  # MLflow would answer the second from the store of the first
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        client = MlflowClient(f"sqlite:///{tmp_path / name}/mlflow.db")
        campaign.ledger["mlflow_run"] = client.create_run(client.create_experiment("tiny")).info.run_id
        assert find_campaign_mlflow_run(read_campaign_evidence(campaign.write())) is not None


def test_curves_are_drawn_also_where_all_runs_agree(tmp_path):
    path = tmp_path / "curves.png"
    draw_curves({"base": [{1: 0.1, 2: 0.5, 3: 0.9}, {1: 0.2, 2: 0.5, 3: 0.8}], "one": [{1: 0.1}]}, "share", path)
    assert path.stat().st_size > 0


@pytest.mark.parametrize(("share", "most"), [(True, 1.0), (False, 3.0)])
def test_bands_do_not_leave_what_the_values_can_be(tmp_path, monkeypatch, share, most):
    bands = []
    monkeypatch.setattr(Axes, "fill_between", lambda self, steps, low, high, **style: bands.append((low, high)))
    draw_curves({"base": [{1: 0.0, 2: 0.9}, {1: 0.1, 2: 1.0}]}, "label", tmp_path / "curves.png", share=share)
    ((low, high),) = bands
    assert low.min() == 0.0
    assert 0.9 < high.max() <= most
    assert (high.max() > 1.0) == (not share)


def test_a_folder_without_a_campaign_is_one_line(tmp_path, capsys):
    assert run_report_command([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_page_fits_a_desk_and_a_phone(left, two_families, tmp_path):
    campaign = left(families=two_families)
    run_report_command([str(campaign.write())])
    page = campaign.root / "report" / "report.html"
    assert page.read_text().count('class="strip"') == 3
    assert find_overflow(page, tmp_path / "profile") == {}


COST = {"base": 100, "same": 100, "good": 200, "bad": 100}
"""Tokens that a step decodes; a seed adds its own number."""


def test_runs_that_count_their_tokens_are_shown_against_them(left, tmp_path):
    campaign = left(cost=COST)
    evidence = read_campaign_evidence(campaign.write())
    table = make_token_table(evidence)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    # Eight runs of 100 steps: 10,000 tokens and the mean of the seeds 0 to 7, 3.5.
    assert {rows["base"][name] for name in ("steps", "decoded a step", "decoded")} == {"100", "10,004"}
    assert (rows["good"]["decoded a step"], rows["good"]["backward"]) == ("200", "10,000")
    # The least that any run has decoded is 10,000 of base's first; good has that many after step 50, but for its seed.
    at_equal = np.mean([run.value_at_tokens("val/pass_at_1", "decoded", 10_000) for run in evidence.runs_of("good")])
    halfway = np.mean([run.metrics[50]["val/pass_at_1"] for run in evidence.runs_of("good")])
    assert rows["good"]["pass@1 at 10,000 decoded"] == f"{at_equal:.3f}"
    assert at_equal == pytest.approx(halfway, abs=1e-3)
    out = tmp_path / "out"
    write_report(evidence, {}, out)
    page = (out / "report.md").read_text()
    assert "## Tokens" in page
    assert "learning curves by decoded tokens" in page
    with (out / "tokens.csv").open() as file:
        first, *_ = csv.DictReader(file)
    assert first == {
        **{"condition": "base", "seed": "0", "step": "0", "decoded": "0", "prefill": "0", "forward": "0"},
        **{"backward": "0", "decoded_by_probes": "0"},
    }


def test_runs_without_counts_leave_no_trace_of_them(left, tmp_path):
    evidence = read_campaign_evidence(left().write())
    write_report(evidence, {}, tmp_path / "out")
    assert make_token_table(evidence).rows == []
    assert not (tmp_path / "out" / "tokens.csv").exists()
    assert "okens" not in (tmp_path / "out" / "report.md").read_text().replace("tokens per held-out sample", "")


def test_a_campaign_with_a_budget_is_compared_at_its_marks(left, tmp_path):
    budget = DeclaredBudget(decoded_tokens=9_000, evaluations=2)
    campaign = left(cost=dict.fromkeys(WORTH, 100), steps=None, budget=budget)
    evidence = read_campaign_evidence(campaign.write())
    run = evidence.runs["good", 3]
    # 4,500 and 9,000 tokens are reached by steps 50 and 100, which had decoded 5,003 and 10,003.
    assert run.steps == {0: 0, 4_500: 50, 9_000: 100}
    assert list(run.curve("val/pass_at_1")) == [0, 4_500, 9_000]
    good = compare_conditions(evidence)[1]
    assert good.verdict == "better"
    assert good.differences == pytest.approx(campaign.values("good") - campaign.values("base"))
    write_report(evidence, {}, tmp_path / "out")
    page = (tmp_path / "out" / "report.md").read_text()
    assert "9,000 decoded tokens a run" in page
    assert "of 256 held-out questions after 9,000 decoded tokens" in page
    with (tmp_path / "out" / "runs.csv").open() as file:
        rows = [(row["step"], row["budget"]) for row in csv.DictReader(file)][:3]
    assert rows == [("0", "0"), ("50", "4500"), ("100", "9000")]


def test_a_run_that_has_not_spent_its_budget_is_damaged(left):
    campaign = left(cost=COST, steps=None, budget=DeclaredBudget(decoded_tokens=10_001, evaluations=2))
    with pytest.raises(ValueError, match=r"base/seed0 lacks 10,001 decoded tokens"):
        read_campaign_evidence(campaign.write())


def test_the_area_is_compared_if_it_was_declared(left, tmp_path):
    campaign = left(summary="area")
    evidence = read_campaign_evidence(campaign.write())
    same, good, bad = compare_conditions(evidence)
    plain = compare_conditions(read_campaign_evidence(left("plain").write()))[1]
    assert good.differences.mean() == pytest.approx(plain.leads["area"].test.difference, abs=1e-9)
    assert (good.test.interval, good.verdict) == (good.leads["area"].test.interval, "better")
    assert (bad.verdict, same.verdict[:10]) == ("worse", "equivalent")
    # Questions' areas make the interval for new questions; its middle is that of the areas of runs.
    assert sum(good.general[:2]) / 2 == pytest.approx(good.differences.mean(), abs=1e-6)
    assert good.general.low < good.test.interval.low
    write_report(evidence, {}, tmp_path / "out")
    page = (tmp_path / "out" / "report.md").read_text()
    assert "Compared is the area under pass@1 of 256 held-out questions up to step 100" in page


def test_how_soon_a_level_is_reached_is_compared_if_it_was_declared(left):
    evidence = read_campaign_evidence(left(summary=ReachedLevel(0.65)).write())
    _, good, bad = compare_conditions(evidence)
    run = evidence.runs["good", 0]
    start, half = run.metrics[0]["val/pass_at_1"], run.metrics[50]["val/pass_at_1"]
    assert summarise_run(run, evidence.declaration) == pytest.approx(1 - (0.65 - start) / (half - start) * 50 / 100)
    # From 0.5 to 0.9 in 100 steps, 0.65 comes after 37.5; from 0.5 to 0.8 after 50.
    assert good.differences.mean() == pytest.approx(0.125, abs=0.03)
    assert (good.verdict, bad.verdict) == ("better", "worse")
    assert good.general is None
    assert "the share of the run left once pass@1 has reached 0.65" in evidence.declaration.summary_label.format(
        "pass@1"
    )
    never = read_campaign_evidence(left("never", summary=ReachedLevel(0.99)).write())
    assert summarise_run(never.runs["good", 0], never.declaration) == 0


def test_the_largest_fall_is_compared_if_it_was_declared(left):
    evidence = read_campaign_evidence(left(summary="steadiness").write())
    falling, rising = {0: 0.5, 50: 0.75, 100: 0.25}, {0: 0.5, 50: 0.75, 100: 0.75}
    curves = {"base": falling, "same": falling, "good": rising, "bad": {0: 0.5, 50: 1.0, 100: 0.0}}
    same, good, bad = with_curves(evidence, curves)
    assert [row.leads["steadiness"].differences.mean() for row in (same, good, bad)] == [0.0, 0.5, -0.5]
    assert {row.measure for row in (same, good, bad)} == {"steadiness"}
    assert good.general is None
    assert evidence.declaration.summary_label.format("pass@1") == "one less the largest fall of pass@1"


def test_where_every_seed_has_questions_of_its_own_pairs_share_them_and_one_interval_holds_for_all(left, tmp_path):
    own = left(held_out=HeldOutChoice("by_seed", "by_seed"))
    for cell in own.ledger["cells"]:
        for step in (0, 50, 100):
            own.change(cell, step, questions_sha256=cell.rpartition("seed")[2] * 64)
    evidence = read_campaign_evidence(own.write())
    assert (len(evidence.runs), evidence.refused) == (32, {})
    good = compare_conditions(evidence)[1]
    assert (good.verdict, good.general) == ("better", good.test.interval)
    summary = summarise_conditions(evidence)[0]
    students = paired_t_test(own.values("base"))
    assert summary.pass_at_1.interval == pytest.approx(students.interval)
    write_report(evidence, {}, tmp_path / "out")
    assert "where every seed has held-out questions of its own" in (tmp_path / "out" / "report.html").read_text()

    shared = left("shared")
    shared.change("good/seed3", 100, questions_sha256="3" * 64)
    refused = read_campaign_evidence(shared.write()).refused
    assert refused["good/seed3"] == ["its questions or evaluations are not those of seed 0"]


def test_a_shipped_campaign_is_found_from_anywhere_and_a_misspelt_one_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert find_campaign_folder(Path("configs/campaigns/tiny_smoke.yaml")) == Path("campaigns/tiny_smoke")
    assert find_campaign_folder(Path("campaigns/tiny_smoke")) == Path("campaigns/tiny_smoke")
    assert run_report_command(["configs/campaigns/tiny_smok.yaml"]) == 2
    said = capsys.readouterr().err
    assert "there is no such file. Did you mean configs/campaigns/tiny_smoke.yaml?" in said
