"""The page of colours, in a real browser too."""

import json
import re

import pytest

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_heatmap import CreditHeatmap
from callbacks.probes.credit_oracle import CreditOracle
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from tests.browser import BROWSER, draw_page


def test_without_a_stack_to_follow_the_page_shows_signals_alone(fit, tmp_path):
    fit(steps=1, stack=[CreditHeatmap(completions=3)])
    page = data_of(tmp_path / "heatmap" / "CreditHeatmap_step_000000.html")
    assert [layer["name"] for layer in page["layers"]] == ["entropy", "surprisal"]
    assert len(page["rows"]) == 3


def data_of(path):
    html = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture
def heatmap(fit, tmp_path):
    oracle = CreditOracle(every_n_steps=1, completions=4, samples=4)
    stack = [GRPO(), StrategicGrams(), HICRA(), GTPO(beta=0.5), oracle, CreditHeatmap()]
    fit(steps=1, stack=stack, prompts=4)
    return tmp_path / "heatmap" / "CreditHeatmap_step_000000.html"


def test_the_page_holds_every_ledger_and_the_truth_and_loads_nothing(heatmap):
    page = data_of(heatmap)
    names = [layer["name"] for layer in page["layers"]]
    assert names == ["GRPO", "HICRA", "GTPO", "true credit", "entropy", "surprisal", "planning"]
    for row in page["rows"]:
        assert all(len(values) == len(row["tokens"]) for values in (*row["values"], row["errors"]))
        assert row["prompt"].endswith("=")
        flat, _, shaped = row["values"][:3]
        assert len(set(flat)) == 1
        assert len(set(shaped)) > 1 or flat[0] == 0
    html = heatmap.read_text(encoding="utf-8")
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import|<link", html)
    assert "default-src 'none'" in html


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_a_browser_draws_the_page(heatmap, tmp_path):
    page, shown = data_of(heatmap), draw_page(heatmap, tmp_path / "profile")
    assert 'data-ready="4"' in shown
    assert len(re.findall(r"<span[^>]* data-at=", shown)) == sum(len(row["tokens"]) for row in page["rows"])
    tokens = sum(len(row["tokens"]) for row in page["rows"])
    ticks = re.findall(r'<i class="ticks" style="background: linear-gradient\((.*?)\);">', shown)
    assert len(ticks) == tokens
    assert {tick.count("color-mix") for tick in ticks} == {len(page["layers"])}, "a tick for every layer"
    keys = re.findall(r'<span class="key">(.*?)</span></span>', shown)
    named = [re.findall(r"<span[^>]*>([^<]*)", key) for key in keys]
    assert named == [[layer["name"] for layer in page["layers"]]] * 4
    assert re.search(r'aria-pressed="true">GTPO', shown)
    assert len(re.findall(r'class="verdict ?(?:right)?"', shown)) == 4
