"""``rlcredit card``, whole."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rlcredit.cards.budget import BATCH_BUDGET, CARD_BUDGETS, QUICK_BUDGET
from rlcredit.cards.card import Card
from rlcredit.cards.card_command import run_card_command
from rlcredit.cards.card_policies import select_card_policies

ROOT = Path(__file__).parents[3]

OWN = '''
from callbacks import CreditOperator


class Placebo(CreditOperator, reads="advantages", writes="advantages"):
    """Leave credit as it is."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages.clone()
        return {}


class Flipped(CreditOperator, reads="advantages", writes="advantages"):
    """Give every token the opposite of its credit."""

    def assign(self, rollout):
        rollout.advantages = -rollout.advantages
        return {}
'''


NAMESAKE = """condition: GRPO
trainer: {callbacks: [MaxRL]}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {validation: {completions: 8}}", "mine and GRPO are not evaluated alike"),
        ("model: {sampling: {temperature: 1.5}}", "mine samples other completions than the baseline: model.sampling"),
        ("data: {init_args: {train_size: 64}}", "mine samples other completions than the baseline: data.init_args"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(text, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(f"trainer: {{callbacks: [GRPO, GTPO]}}\n{text}\n")
    assert run_card_command(["GTPO", "mine.yaml"]) == 2
    assert message in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


def test_conditions_that_differ_have_names_that_differ(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(NAMESAKE)
    assert run_card_command(["mine.yaml"]) == 2
    assert "GRPO and mine.yaml are different conditions, both called GRPO. Rename one." in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "nothing to test is named"),
        (["NoSuch"], "neither an operator nor the class path of one"),
        (["GTPO", "--organism", "nowhere"], "there is no nowhere. There are aligned"),
        (["GTPO", "--organism", "decoi"], "there is no decoi. Did you mean `decoy`?"),
        (["--organism", "aligned", "GTPO"], "there is no GTPO. There are aligned"),
        (["GTPO", "--baseline", "TopTokens"], "is a probe"),
        (["GTPO", "--slots", "0"], "expected a number from 1 on"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(args, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        status = run_card_command(args)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


SMALL = replace(QUICK_BUDGET, prompts=12, completions=4, asked=4, samples=8, steps=8, evaluations=1, questions=64)


def cards(folder):
    """Return the cards in a folder, by the names of their conditions."""
    return {path.parent.name: Card.read(path) for path in folder.glob("cards/aligned/quick/*/card.json")}


@pytest.mark.slow
def test_a_placebo_makes_no_difference_and_a_flipped_sign_is_worse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(CARD_BUDGETS, "quick", SMALL)
    (tmp_path / "own_two.py").write_text(OWN)
    assert run_card_command(["own_two.py:Placebo", "own_two.py:Flipped"]) == 0
    found = cards(tmp_path)
    assert found["Placebo"].verdict == "no difference"
    assert found["Flipped"].verdict == "worse"
    assert found["Flipped"].finding("angle").estimate == pytest.approx(180)


@pytest.mark.slow
def test_a_condition_that_uses_rollouts_again_is_compared_at_equal_rollouts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(CARD_BUDGETS, "quick", replace(SMALL, seeds=(0, 1), steps=2))
    assert run_card_command([str(ROOT / "configs" / "conditions" / "losses" / "grpo_reused.yaml")]) == 0
    card = cards(tmp_path)["grpo_reused"]
    assert "model.updates_per_rollout: baseline 1, here 4" in card.beside
    assert {name: [point[0] for point in curve] for name, curve in card.curves.items()} == {
        "grpo_reused": [0, 2],
        "GRPO": [0, 2],
    }


@pytest.mark.slow
def test_one_batch_makes_a_card_without_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(CARD_BUDGETS, "batch", replace(BATCH_BUDGET, prompts=12, completions=4, asked=4, samples=8))
    assert run_card_command(["GTPO", "HICRA", "--budget", "batch", "--mlflow", "none"]) == 0
    card = Card.read(tmp_path / "cards" / "aligned" / "batch" / "GTPO" / "card.json")
    assert card.verdict == "not trained"
    lead = [card.finding(name).sentence for name in ("agreement", "cosine_within")]
    assert card.sentence == " ".join([*lead, "No run says what is learnt from it."])
    assert card.sentence in capsys.readouterr().out
    assert set(card.sections) == {"batch", "gradient", "truth", "cost"}
    assert card.finding("agreement").low < card.finding("agreement").high
    assert not (tmp_path / "cards" / "arms").exists()
    assert "nan" not in (tmp_path / "cards" / "leaderboard.md").read_text()
    capsys.readouterr()
    assert run_card_command(["callbacks.episode.maxrl.MaxRL", "GTPO", "--budget", "batch", "--mlflow", "none"]) == 0
    said = capsys.readouterr().err
    assert re.fullmatch(r"measuring  MaxRL on aligned\nmeasured   MaxRL on aligned \([\d.]+ (s|min)\)\n", said)
    with (tmp_path / "cards" / "leaderboard.csv").open(newline="") as file:
        assert {row["condition"] for row in csv.DictReader(file)} == {"GTPO", "HICRA", "MaxRL"}


@pytest.mark.slow
def test_a_shipped_operator_gets_a_whole_card_and_nothing_is_measured_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(CARD_BUDGETS, "quick", SMALL)
    assert run_card_command(["GTPO"]) == 0
    card = cards(tmp_path)["GTPO"]
    assert re.match("better|worse|equivalent|undecided", card.verdict)
    assert set(card.sections) == {"batch", "gradient", "truth", "learning", "cost"}
    assert (tmp_path / "cards" / "GTPO-quick" / "card.html").stat().st_size > 20_000
    with (tmp_path / "cards" / "leaderboard.csv").open(newline="") as file:
        assert "GTPO" in {row["condition"] for row in csv.DictReader(file)}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("held_out/*.json")}
    capsys.readouterr()
    assert run_card_command(["GTPO"]) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("held_out/*.json")} == before
    assert "measuring" not in capsys.readouterr().err


def test_shipped_organisms_are_the_shipped_ones_wherever_the_command_is_given(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "tiny.yaml").write_text("condition: another\n")
    monkeypatch.chdir(tmp_path)
    (place,) = select_card_policies(["aligned", "aligned"])
    assert [Path(file).read_text() for file in place.files] == [(ROOT / "configs" / "tiny.yaml").read_text()]


def test_organisms_that_differ_have_names_that_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/mine.yaml", "b/mine.yaml", "a/decoy.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("model: {}\n")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ValueError, match=r"empty\.yaml needs model, data and trainer"):
        select_card_policies(["empty.yaml"])
    with pytest.raises(ValueError, match=r"a/mine\.yaml and b/mine\.yaml share a name"):
        select_card_policies(["a/mine.yaml", "b/mine.yaml"])
    with pytest.raises(ValueError, match=r"a/decoy\.yaml: that name is taken\. Rename the file"):
        select_card_policies(["a/decoy.yaml"])
