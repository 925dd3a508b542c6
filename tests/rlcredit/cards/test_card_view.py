"""Cards for people."""

import dataclasses
import html
import json
import re

import pytest

from callbacks.tokens.gtpo import GTPO
from rlcredit.cards.card import Card
from rlcredit.cards.card_view import CardView, write_card_page
from rlcredit.cards.leaderboard import make_board_table
from rlcredit.cards.operator_text import describe_operator
from rlcredit.cards.ranking import Leaderboard, summarise_card
from rlcredit.cards.stack_properties import StackProperty
from rlcredit.credit.heatmap import draw_heatmap
from tests.browser import BROWSER, find_overflow
from tests.rlcredit.cards.cards import made


def test_a_card_is_kept_whole(tmp_path):
    card = dataclasses.replace(made("Mine", 2.0), curves={"Mine": [[0, 0.4, 0.4, 0.4]]})
    card.write(tmp_path / "card.json")
    again = Card.read(str(tmp_path / "card.json"))
    assert again.finding("gain").estimate == 2.0
    assert again.finding("collapses").interval is None
    again.write(tmp_path / "again.json")
    Card.read(tmp_path / "again.json").write(tmp_path / "third.json")
    assert (tmp_path / "third.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    assert json.loads((tmp_path / "again.json").read_bytes()) == json.loads((tmp_path / "card.json").read_bytes())
    assert again.curves == {"Mine": [(0.0, 0.4, 0.4, 0.4)]}


def test_the_page_shows_every_finding_and_loads_nothing(tmp_path):
    card = made("Mine", 2.0)
    page = write_card_page(CardView([card]), tmp_path).read_text()
    assert not re.search(r"(src|href)=[\"'](?!data:)", page)
    for found in (one for section in card.sections.values() for one in section):
        assert found.title in page
    assert "+1.00 to +3.00" in page
    assert "A quarter of &lt;b&gt;it" in page
    assert 'srcdoc="&lt;p&gt;heat' in page
    assert 'class="holds"' in page
    assert 'class="fails"' in page


def test_markdown_says_the_same(tmp_path):
    text = (write_card_page(CardView([made("Mine", 2.0)]), tmp_path).with_suffix(".md")).read_text()
    assert "**better** on aligned. Mine: better." in text
    assert "| gain at the end, paired | +2.00 | +1.00 to +3.00 |" in text
    assert "- padding: no, it matters" in text


def test_what_the_operator_is_stands_with_formula_arguments_and_source(tmp_path):
    operator = describe_operator(GTPO(beta=0.25))
    card = dataclasses.replace(made("Mine", 2.0), operators=[operator])
    page = write_card_page(CardView([card]), tmp_path).read_text()
    assert "<msub><mi>w</mi><mi>t</mi></msub><mo>=</mo>" in page
    assert "<code>beta = 0.25</code></dt><dd>Strength of the reweighting." in page
    assert "<details><summary>Source of GTPO</summary><pre>&#34;&#34;&#34;GTPO: more credit" in page


def test_gains_are_strips_and_runs_are_curves(tmp_path):
    curves = {"Mine": [[0, 0.4, 0.4, 0.4], [10, 0.6, 0.5, 0.7]], "GRPO": [[0, 0.4, 0.4, 0.4], [10, 0.5, 0.4, 0.6]]}
    page = write_card_page(CardView([dataclasses.replace(made("Mine", 2.0), curves=curves)]), tmp_path).read_text()
    assert page.count('<svg class="strip"') == 2
    assert page.count('<polyline class="line"') == page.count('<polygon class="band"') == 2
    assert ">Mine</text>" in page


def test_a_fact_has_no_red_cross(tmp_path):
    facts = [StackProperty("order", False, "it matters"), StackProperty("padding", False, "a fault")]
    page = write_card_page(CardView([dataclasses.replace(made("Mine", 2.0), properties=facts)]), tmp_path).read_text()
    assert '<dd class="differs">it matters</dd>' in page
    assert '<dd class="fails">a fault</dd>' in page


def test_what_is_the_same_for_all_is_said_once():
    rows = [summarise_card(made(name, gain)) for name, gain in (("One", 1.0), ("Two", 2.0))]
    table = make_board_table(Leaderboard(rows), [])
    assert "collapsed" not in table.columns
    assert table.note == "The same for all: collapsed 0, credit moved 25.0 %."
    gain = table.rows[0][table.columns.index("gain at the end")]
    assert (gain, gain.detail) == ("+2.00", "+1.00 to +3.00")


def test_several_organisms_stand_on_one_page(tmp_path):
    page = write_card_page(CardView([made("Mine", 2.0), made("Mine", -3.0, "worse", "decoy")]), tmp_path).read_text()
    assert "on aligned" in page
    assert "on decoy" in page
    assert "-3.00" in page


def test_a_warning_belongs_to_its_organism(tmp_path):
    warned = dataclasses.replace(made("Mine", 2.0, organism="decoy"), warnings=["It gives nothing."])
    for suffix in (".html", ".md"):
        page = write_card_page(CardView([made("Mine", 2.0), warned]), tmp_path).with_suffix(suffix).read_text()
        assert "on decoy" in page
        assert page.count("It gives nothing.") == 1


@pytest.mark.slow
def test_it_is_recorded_once(tmp_path):
    tracker = f"sqlite:///{tmp_path / 'mlflow.db'}"
    for _ in range(2):
        write_card_page(CardView([made("Mine", 2.0)]), tmp_path / "cards", tracker)
    from mlflow import MlflowClient

    client = MlflowClient(tracker)
    (run,) = client.search_runs([client.get_experiment_by_name("cards").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["aligned/learning/gain"] == 2.0
    assert run.data.metrics["aligned/learning/gain_high"] == 3.0
    assert run.data.tags["verdict"] == "better"
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {"card.html", "card.md"}


@pytest.mark.slow
def test_another_tracker_gets_it_too(tmp_path):
    from mlflow import MlflowClient

    for name in ("one", "two"):
        tracker = f"sqlite:///{tmp_path / name}.db"
        write_card_page(CardView([made("Mine", 2.0)]), tmp_path / "cards", tracker)
        client = MlflowClient(tracker)
        assert len(client.search_runs([client.get_experiment_by_name("cards").experiment_id])) == 1


def test_a_tree_that_was_edited_is_said(tmp_path):
    edited = dataclasses.replace(made("Mine", 2.0), commit=f"{'0123456789' * 4}-dirty")
    for suffix in (".html", ".md"):
        assert (
            "commit 012345678901-dirty" in write_card_page(CardView([edited]), tmp_path).with_suffix(suffix).read_text()
        )


DATA = '<script type="application/json" id="data">{}</script>'
DRAWN = {"title": "Credit at <b>step</b> 3", "stack": "GRPO", "layers": [], "rows": [], "shown": 0}
STEAL = "<script>steal()</script>"


@pytest.mark.parametrize(
    ("page", "sandbox"),
    [
        (draw_heatmap(DRAWN), "allow-scripts"),
        (DATA.format(json.dumps(DRAWN)), "allow-scripts"),
        (STEAL, ""),
        (DATA.format(json.dumps(DRAWN)) + STEAL, "allow-scripts"),
        (DATA.format(json.dumps(DRAWN | {"title": "</title>" + STEAL}).replace("<", "\\u003c")), "allow-scripts"),
        (DATA.format("</script>" + STEAL), ""),
        (DATA.format('["title", "stack"]'), ""),
    ],
)
def test_no_script_of_a_page_from_elsewhere_runs(tmp_path, page, sandbox):
    card = dataclasses.replace(made("Mine", 2.0), page=page)
    text = write_card_page(CardView([card]), tmp_path).read_text()
    heatmap = re.search(r'<iframe .*? srcdoc="(.*?)"></iframe>', text, re.DOTALL)
    shown = html.unescape(heatmap[1])
    assert f'<iframe sandbox="{sandbox}" ' in text
    assert text.count("<script") == TEMPLATE_SCRIPTS
    assert not sandbox or (shown.count("<script") == HEATMAP_SCRIPTS and STEAL not in shown)


HEATMAP_SCRIPTS = 2
"""Scripts of a heat-map: its data, and what draws them."""

TEMPLATE_SCRIPTS = 2
"""Of the page itself: one sorts its board, one gives a heat-map the height that it asks for."""


def test_a_text_of_a_card_is_no_html_in_markdown(tmp_path):
    card = dataclasses.replace(made("Mine", 2.0), sentence="<img src=x onerror=a> ![a](http://b)")
    text = write_card_page(CardView([card]), tmp_path).with_suffix(".md").read_text()
    assert "&lt;img src=x onerror=a> ![a]\\(http://b)" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../../elsewhere"}, "cannot name a folder"),
        ({"budget": "endless"}, "budget is 'endless', not 'batch', 'quick', 'standard', 'full' or 'rollout'"),
        ({"origins": ["a"]}, "origins[1] is missing"),
        ({"sections": {"batch": [{"name": "a"}]}}, "sections.batch[0].title is missing"),
        ({"properties": 1}, "properties is 1, not a list"),
        ({"other": 1}, "other is an unknown key"),
        ({"curves": {"Good": [[0, 0.5]]}}, "curves.Good[0][2] is missing"),
        ({"operators": [{"name": "a"}]}, "operators[0].summary is missing"),
        ({"sentence": 10**30}, "sentence is 1"),
    ],
)
def test_a_card_from_elsewhere_is_named_and_the_others_work(tmp_path, capsys, change, words):
    for name in ("Good", "Bad"):
        made(name, 1.0).write(tmp_path / "aligned" / "quick" / name / "card.json")
    bad = tmp_path / "aligned" / "quick" / "Bad" / "card.json"
    bad.write_text(json.dumps({**json.loads(bad.read_text()), **change}))
    assert [card.name for card in Card.read_all(tmp_path)] == ["Good"]
    err = capsys.readouterr().err
    assert f"{bad} is damaged: " in err.replace(" .. ", "") or words in err
    assert words in err


@pytest.mark.parametrize("number", ["1" + "0" * 400, "Infinity", "1e999", '"1"'])
def test_a_number_that_is_none_is_named_with_its_place(tmp_path, number):
    path = tmp_path / "card.json"
    made("Mine", 2.0).write(path)
    path.write_text(path.read_text().replace('"estimate": 0.25', f'"estimate": {number}'))
    with pytest.raises(ValueError, match=r"sections\.batch\[0\]\.estimate is"):
        Card.read(path)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_page_fits_a_desk_and_a_phone(tmp_path):
    card = made("Mine", 2.0, "undecided: 0 of 6 runs collapsed, 1 of the baseline's")
    curves = {name: [(0.0, 0.4, 0.3, 0.5), (30.0, 0.6, 0.5, 0.7)] for name in ("AnOperatorOfALongName", "GRPO")}
    page = write_card_page(CardView([dataclasses.replace(card, curves=curves)]), tmp_path)
    assert find_overflow(page, tmp_path / "profile") == {}
