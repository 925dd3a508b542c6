"""Conditions beside each other on several organisms."""

import csv
from pathlib import Path

import matplotlib.image
import pytest

from rlcredit.cards import leaderboard, ranking
from rlcredit.cards.card import BASELINE_VERDICT
from rlcredit.cards.ranking import summarise_card
from tests.browser import BROWSER, find_overflow
from tests.rlcredit.cards.cards import made


@pytest.fixture
def rows():
    cards = [
        made("GRPO", 0.0, BASELINE_VERDICT),
        made("Good", 4.0),
        made("Bad", -6.0, "worse"),
        made("GRPO", 0.0, BASELINE_VERDICT, "decoy"),
        made("Good", 2.0, "undecided: a new campaign needs 20 seeds", "decoy"),
        made("Bad", -2.0, "worse", "decoy"),
    ]
    return [summarise_card(card) for card in cards]


def test_markdown_has_a_line_per_condition_and_a_column_per_organism(rows):
    head, _, *lines = leaderboard.render_leaderboard_table(rows).splitlines()
    assert head == "| condition | aligned | decoy | mean |"
    assert lines[0] == "| Good | +2.0 (+1.0 to +3.0) | +1.0 (+0.0 to +2.0) | **+1.5 (+0.9 to +2.1)** |"
    assert lines[1] == "| GRPO | 0 | 0 | 0 |"


def test_where_nothing_was_trained_it_says_what_one_batch_says(rows, tmp_path):
    untrained = [
        each | {name: "" for name in each if name.startswith(("gain", "area_gain", "collapses"))} for each in rows
    ]
    title, _, head, _, first, *_ = leaderboard.render_leaderboard_table(untrained).splitlines()
    assert title == "**aligned**, one batch, against `GRPO`"
    assert head == "| condition | credit moved |"
    assert first == "| GRPO | 25.0 % (20.0 % to 30.0 %) |"
    page = leaderboard.write_leaderboard(untrained, tmp_path).read_text()
    assert "The same for all: credit moved 25.0 %." in page
    assert not (tmp_path / "leaderboard.png").exists()


def test_all_of_it_is_written(rows, tmp_path):
    page = leaderboard.write_leaderboard(rows, tmp_path).read_text()
    assert page.count("<tr") == 1 + 3 + 1 + 2 + len(rows)  # heads, conditions, the axis of their means, policies
    assert "+1.50<small>+0.89 to +2.11</small>" in page
    assert "undecided: a new campaign needs 20 seeds" in page  # where one points
    assert ranking.summarise_leaderboard(rows) in page
    assert 'data-value="4"' in page
    assert "rlcredit card Good --budget quick --organism decoy --baseline GRPO, commit 0123abc" in page
    assert (tmp_path / "leaderboard.png").stat().st_size > 5000
    with (tmp_path / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(each["condition"], each["organism"], each["gain"], each["moved_low"]) for each in rows][1] == (
        "Good",
        "aligned",
        "4",
        "0.2",
    )


def test_one_organism_has_no_mean_of_all(rows, tmp_path):
    page = leaderboard.write_leaderboard(rows[:3], tmp_path).read_text()
    assert "All test policies" not in page
    assert page.count("<tr") == 1 + 3


def test_the_picture_has_a_panel_more_than_organisms(rows, tmp_path):
    sizes = []
    for kept in (rows[:3], rows):
        leaderboard.plot_condition_gains(kept, tmp_path / "board.png")
        sizes.append(matplotlib.image.imread(tmp_path / "board.png").shape[1])
    assert sizes == [150 * 4.1, 150 * 7.9]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_shipped_leaderboard_fits_a_desk_and_a_phone(tmp_path):
    with (Path(leaderboard.__file__).parent / "shipped.csv").open(newline="", encoding="utf-8") as file:
        page = leaderboard.write_leaderboard(list(csv.DictReader(file)), tmp_path)
    assert find_overflow(page, tmp_path / "profile") == {}
