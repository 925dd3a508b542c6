"""A report says what the runs say, in every form, and refuses what cannot be compared."""

import csv
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from rlcredit.report.command import main
from rlcredit.report.comparison import comparisons
from rlcredit.report.evidence import collected
from rlcredit.report.metric import Metric, unlike
from rlcredit.report.summary import summaries
from rlcredit.report.variance import decompositions

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome", "chrome"])), None)
FLAGS = """
    --headless --no-sandbox --disable-gpu --no-first-run --disable-quic --disable-background-networking
    --disable-component-update --disable-sync --virtual-time-budget=4000 --dump-dom
"""


def test_verdicts_are_those_of_scipy_and_statsmodels(left):
    campaign = left()
    found = comparisons(collected(campaign.write()))
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
    found = comparisons(collected(campaign.write()))
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
    good = comparisons(collected(left().write()))[1]
    assert good.general.high - good.general.low > good.test.interval.high - good.test.interval.low
    assert good.general.low < 0.0925 < good.general.high, "the true difference: 0.1, less what is cut at one"


def test_every_family_is_corrected_by_itself(left, two_families):
    campaign = left(families=two_families)
    found = {each.condition: each for each in comparisons(collected(campaign.write()))}
    alone = stats.ttest_rel(campaign.values("bad"), campaign.values("good")).pvalue
    assert found["bad"].p == pytest.approx(alone, rel=1e-9)
    assert found["good"].p == pytest.approx(
        2 * stats.ttest_rel(campaign.values("good"), campaign.values("base")).pvalue
    )


def test_no_verdict_before_all_pairs_are_there(left):
    campaign = left()
    campaign.ledger["cells"]["good/seed3"]["state"] = "failed"
    evidence = collected(campaign.write())
    said = [each.verdict for each in comparisons(evidence)]
    assert said == ["open: its family is not complete", "open: 7 of 8 pairs", "open: its family is not complete"]
    assert evidence.absent == {"good/seed3": "failed"}
    assert all(each.p is None for each in comparisons(evidence))


def test_a_run_that_differs_from_what_was_declared_is_in_no_number(left, capsys, tmp_path):
    campaign = left()
    campaign.ledger["cells"]["same/seed0"]["differences"] = ["model.lr: declared 0.1, executed 0.2"]
    assert main([str(campaign.write())]) == 1
    assert "refused: same/seed0: model.lr: declared 0.1, executed 0.2" in capsys.readouterr().out
    rows = list(csv.DictReader((campaign.root / "report" / "runs.csv").read_text().splitlines()))
    assert len(rows) == 31 * 3
    assert ("same", "0") not in {(row["condition"], row["seed"]) for row in rows}
    assert "not executed as declared" in (campaign.root / "report" / "report.html").read_text()


def test_files_that_contradict_the_ledger_are_refused(left):
    campaign = left()
    path = campaign.root / "good" / "seed1" / "held_out" / "step_000100.json"
    outcome = json.loads(path.read_text())
    path.write_text(json.dumps({**outcome, "right": [[1, 1, 1, 1], *outcome["right"][1:]]}))
    reasons = collected(campaign.write()).refused["good/seed1"]
    assert re.fullmatch(r"step 100: pass@1 is 0\.\d+ in the metrics and 0\.\d+ in the verdicts", reasons[0])
    path.unlink()
    reasons = collected(campaign.root).refused["good/seed1"]
    assert reasons[0] == "its held-out files are not those that the ledger has recorded"


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("model", "validation", "temperature"), 1.0, "settings.model.validation.temperature: good 1.0, base 0.7"),
        (
            ("data", "init_args", "name"),
            "countdown",
            "settings.data.init_args.name: good 'countdown', base 'chain_sum'",
        ),
    ],
)
def test_metrics_of_different_definition_are_not_compared(left, where, value, said):
    campaign = left()
    place = campaign.ledger["configs"]["good"]
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    verdicts = {each.condition: each.verdict for each in comparisons(collected(campaign.write()))}
    assert verdicts["good"] == f"not compared: {said}"
    assert verdicts["bad"] == "open: its family is not complete"


def test_the_size_of_a_training_batch_is_no_part_of_a_held_out_metric(left):
    campaign = left()
    campaign.ledger["configs"]["good"]["data"]["init_args"]["prompts_per_step"] = 4
    assert comparisons(collected(campaign.write()))[1].verdict == "better"


def test_running_means_and_last_steps_are_two_metrics():
    running = Metric("solve rate", "all training batches so far")
    last = Metric("solve rate", "the last training batch")
    assert unlike(running, last, ("4B", "30B")) == [
        "over: 4B 'all training batches so far', 30B 'the last training batch'"
    ]
    assert unlike(running, running, ("a", "b")) == []


def test_a_condition_by_itself(left):
    campaign = left()
    found = {each.condition: each for each in summaries(collected(campaign.write()))}
    good = campaign.values("good")
    assert found["good"].pass_at_1.mean == pytest.approx(good.mean())
    assert found["good"].pass_at_1.interval.low < good.mean() < found["good"].pass_at_1.interval.high
    assert found["good"].iqm == pytest.approx(stats.trim_mean(good, 0.25))
    assert found["good"].deviation == pytest.approx(good.std(ddof=1))
    right = np.stack([campaign.right["good", seed] for seed in range(8)])
    assert found["good"].pass_at_k.mean == pytest.approx(right.any(-1).mean()), "pass@4 of four samples"
    assert 0.6 < found["good"].area.mean < 0.8, "from 0.5 to 0.9"


def test_few_seeds_have_no_interval_for_new_questions_and_one_seed_has_none(left):
    few = collected(left("few", seeds=(0, 1)).write())
    assert comparisons(few)[1].general is None
    assert summaries(few)[0].pass_at_1.interval is not None
    one = collected(left("one", seeds=(0,)).write())
    assert comparisons(one)[1].verdict == "undecided: one pair has no spread"
    assert summaries(one)[0].pass_at_1.interval is None


def test_runs_that_are_the_same_are_equivalent(left):
    campaign = left()
    for seed in range(8):
        copied = campaign.ledger["cells"][f"base/seed{seed}"]
        campaign.ledger["cells"][f"same/seed{seed}"] = copied
        shutil.rmtree(campaign.root / "same" / f"seed{seed}")
        shutil.copytree(campaign.root / "base" / f"seed{seed}", campaign.root / "same" / f"seed{seed}")
    same = comparisons(collected(campaign.write()))[0]
    assert (same.verdict, same.p, same.effect) == ("equivalent within 2 pp", 1.0, None)


def test_variance_comes_from_where_it_was_put(left):
    found = decompositions(collected(left().write()))
    shares = found["after step 100"].shares
    assert set(shares) == {"prompt", "arm", "run", "residual"}
    variances = found["after step 100"].variances
    assert variances["arm"] == pytest.approx(np.var([0.8, 0.8, 0.9, 0.7], ddof=1), rel=0.3)
    assert variances["prompt"] == pytest.approx(0.01, rel=0.35), "a deviation of 0.1, some of it cut at one"
    assert variances["run"] < 0.0005
    assert found["all evaluations"].shares["step"] > 0.1


def test_everything_is_written_and_the_page_needs_nothing_else(left, two_families, capsys):
    campaign = left(families=two_families)
    assert main([str(campaign.write())]) == 0
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
    assert [row["condition"] for row in rows] == ["same", "good", "bad"]
    assert float(rows[1]["difference"]) == pytest.approx((campaign.values("good") - campaign.values("base")).mean())


def test_a_folder_without_a_campaign_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_a_desk_and_a_phone(left, two_families, tmp_path, width):
    campaign = left(families=two_families)
    main([str(campaign.write())])
    html = (campaign.root / "report" / "report.html").read_text()
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    probe = """<script>addEventListener("load", () => {
        const drawn = [...document.images].every(image => image.naturalWidth > 100);
        const strips = document.querySelectorAll(".strip").length;
        document.title = [document.documentElement.scrollWidth, innerWidth, drawn, strips].join();
    })</script>"""
    page = tmp_path / "page.html"
    page.write_text(html.replace("</head>", f"{probe}</head>"))
    command = [
        BROWSER,
        *FLAGS.split(),
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900",
        str(page),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    scrolls, inner, drawn, strips = re.search(r"<title>([^<]*)</title>", dom)[1].split(",")
    assert int(scrolls) <= int(inner)
    assert (drawn, strips) == ("true", "3")
