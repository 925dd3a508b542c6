"""What runs learn on hard and easy questions, counted from the verdicts of a campaign."""

from types import SimpleNamespace

import numpy as np
import pytest
from docs.studies.equal_tokens import tabulate_difficulty

from rlcredit.report.evidence import FinishedRun

BEFORE = [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]
FLAT = [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
OTHER = {
    1: [[0, 0, 1, 0], [1, 1, 0, 1], [1, 1, 0, 0], [1, 1, 1, 1]],
    2: [[0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 0]],
    3: [[0, 0, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]],
}


def make_run(condition, seed, after):
    right = {place: np.array(verdicts, dtype=float) for place, verdicts in ((0, BEFORE), (9, after))}
    return FinishedRun(condition, seed, ("", ()), right, {}, {})


@pytest.fixture
def rows(monkeypatch, tmp_path):
    runs = {("flat", seed): make_run("flat", seed, FLAT) for seed in OTHER}
    runs |= {("other", seed): make_run("other", seed, after) for seed, after in OTHER.items()}
    monkeypatch.setattr(tabulate_difficulty, "read_campaign_evidence", lambda folder: SimpleNamespace(runs=runs))
    return list(tabulate_difficulty.tabulate_runs(tmp_path))


def test_questions_are_sorted_by_what_was_right_before_training(rows):
    first = {row["level"]: row for row in rows if (row["condition"], row["seed"]) == ("flat", "1")}
    assert {level: row["questions"] for level, row in first.items()} == {"hard": "2", "middling": "1", "easy": "1"}
    assert [float(first["hard"][name]) for name in ("before", "pass_at_1", "pass_at_k")] == [0.125, 0.25, 0.5]
    assert [float(first["easy"][name]) for name in ("before", "pass_at_1", "pass_at_k")] == [1, 0.75, 1]


def test_leads_are_paired_by_seed_and_in_points(rows):
    lead = tabulate_difficulty.estimate_level_lead(rows, "other", "hard", "pass_at_1", "flat")
    half = 4.302653 * np.std([25, 12.5, 25], ddof=1) / 3**0.5
    assert (lead.mean, lead.low, lead.high) == pytest.approx((62.5 / 3, 62.5 / 3 - half, 62.5 / 3 + half))
    solved = tabulate_difficulty.estimate_level_lead(rows, "other", "hard", "pass_at_k", "flat")
    assert solved.mean == pytest.approx(100 / 3)


@pytest.mark.filterwarnings("ignore:Precision loss")  # all runs solve the easy one
def test_the_table_names_the_baseline_first_at_every_level(rows, tmp_path, capsys):
    out = tmp_path / "difficulty.csv"
    tabulate_difficulty.main([str(tmp_path), "--out", str(out)])
    written = capsys.readouterr().out
    assert "| hard (2 questions, 0.12 before) | flat | 0.250 | 0.500 |" in written
    assert [line.split("|")[2].strip() for line in written.splitlines()[2:]] == ["flat", "other"] * 3
    tabulate_difficulty.main([str(out)])
    assert capsys.readouterr().out == written
