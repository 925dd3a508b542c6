"""What runs have shown."""

from dataclasses import replace

import numpy as np
import pytest

from rlcredit.cards.card import NO_DIFFERENCE
from rlcredit.cards.training_outcome import PRIMARY_METRIC, TrainingOutcome, conclude_card
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.evidence import FinishedRun
from rlcredit.report.run_measures import MeasuredLead
from rlcredit.statistics.t_test import paired_t_test
from tests.rlcredit.cards.cards import made

START, STEPS = 0.4, (0, 10, 20)


def run(seed, end, half=None):
    curve = dict(zip(STEPS, (START, (START + end) / 2 if half is None else half, end), strict=True))
    metrics = {step: {PRIMARY_METRIC: value, "val/entropy": 0.1} for step, value in curve.items()}
    right = {step: np.full((4, 2), value) for step, value in curve.items()}
    return FinishedRun("one", seed, ("", (0, 1, 2, 3)), right, metrics, {})


def learnt(ends, base):
    runs, others = ([run(seed, end) for seed, end in enumerate(values)] for values in (ends, base))
    differences = np.subtract(ends, base)
    leads = {"end": MeasuredLead(differences, paired_t_test(differences)), "area": MeasuredLead(differences / 2)}
    return TrainingOutcome(
        ConditionComparison("all", "GRPO", "Mine", (0, 1, 2), "end", leads, "worse"),
        runs,
        others,
        1e-3,
        5e-4,
    )


def test_findings_are_those_of_the_pairs():
    found = {one.name: one for one in learnt((0.5, 0.55, 0.45), (0.8, 0.82, 0.78)).findings()}
    assert found["gain"].estimate == pytest.approx(-30)
    assert found["gain"].high < 0
    assert found["pass_at_1"].baseline == pytest.approx(0.8)
    assert found["rate"].estimate == 1e-3
    assert found["steps"].baseline == pytest.approx(10, abs=1)
    assert found["steps"].estimate == 20
    assert "never get there" in found["steps"].sentence


def test_tokens_are_found_where_all_runs_have_counted_them_and_gains_are_compared_at_equal_ones():
    outcome = learnt((0.6, 0.7, 0.8), (0.5, 0.5, 0.5))
    assert "tokens" not in {one.name for one in outcome.findings()}

    def counting(runs, cost):
        return [replace(run, tokens={step: {"decoded": cost * step} for step in STEPS}) for run in runs]

    counted = replace(outcome, runs=counting(outcome.runs, 200), baseline=counting(outcome.baseline, 100))
    found = {one.name: one for one in counted.findings()}
    assert (found["tokens"].estimate, found["tokens"].baseline) == (200, 100)
    # 2,000 tokens are ten steps of the condition, which is halfway to 0.7 by then, and all twenty of the baseline.
    assert found["token_gain"].estimate == pytest.approx(100 * ((0.4 + 0.7) / 2 - 0.5))
    assert "After 2,000 decoded tokens" in found["token_gain"].sentence


def test_curves_have_a_mean_and_a_band_at_every_step():
    outcome = learnt((0.5, 0.55, 0.45), (0.8, 0.82, 0.78))
    assert list(outcome.curves) == ["Mine", "GRPO"]
    first, _, last = outcome.curves["Mine"]
    assert first == pytest.approx([0, 0.4, 0.4, 0.4])
    assert last[:2] == (20, pytest.approx(0.5))
    # The standard error of 0.45, 0.5 and 0.55 is 0.05 / sqrt(3), the quantile of t with two degrees of freedom 4.303.
    assert last[2:] == pytest.approx([0.5 - 4.303 * 0.05 / 3**0.5, 0.5 + 4.303 * 0.05 / 3**0.5], abs=1e-4)


def test_the_verdict_is_that_of_the_pairs():
    verdict, sentence = conclude_card(made("Mine", 0.0), learnt((0.5, 0.55, 0.45), (0.8, 0.82, 0.78)))
    assert verdict == "worse"
    assert "ends 30.0 points below GRPO" in sentence


def test_runs_that_answer_alike_are_no_difference_only_where_no_credit_moves():
    same, card = learnt((0.8, 0.82, 0.78), (0.8, 0.82, 0.78)), made("Mine", 0.0)
    assert same.has_equal_answers
    assert conclude_card(card, same)[0] != NO_DIFFERENCE
    card.sections = {"batch": [one for one in card.sections["batch"] if one.name != "moved"]}
    assert conclude_card(card, same)[0] != NO_DIFFERENCE
    unmoved = made("Mine", 0.0)
    unmoved.sections = {"batch": [type(one)("moved", one.title, 0.0) for one in unmoved.sections["batch"]]}
    assert conclude_card(unmoved, same)[0] == NO_DIFFERENCE
