"""The page of colours, in a real browser too."""

import json
import re
import shutil
import subprocess

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.credit_heatmap import CreditHeatmap, colour_scale
from callbacks.probes.credit_oracle import CreditOracle
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.continuations import Continuations
from rlcredit.tasks.example import Example
from tests.conftest import make_rollout

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome", "chrome"])), None)


FLAGS = """
    --headless --no-sandbox --disable-gpu --no-first-run --disable-quic --disable-background-networking
    --disable-component-update --disable-sync --virtual-time-budget=4000 --dump-dom
"""


def test_colours_are_full_where_few_values_are_larger():
    assert colour_scale(torch.arange(-100.0, 1.0)) == 98
    assert colour_scale(torch.tensor([0.0] * 999 + [-4.0])) == 4
    assert colour_scale(torch.zeros(3)) == 1


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


def test_tokens_with_credit_in_place_of_another_stand_with_it():
    rollout = make_rollout()
    rollout.trail = (("ExpectedGradient", rollout.advantages),)
    rollout.sources = tuple((number, Example("1 + 1 =", "2", {})) for number in range(2))
    two, one = torch.tensor([0, 0]), torch.tensor([1, 1])
    rollout.alternatives = WeightedTokens(
        two, one, torch.tensor([5, 6]), torch.tensor([0.25, 0.125]).log(), torch.tensor([-0.5, 0.3])
    )
    page = CreditHeatmap(completions=8).collect_page(rollout)
    assert page["rows"][0]["alternatives"] == {1: [("<5>", 0.25, -0.5), ("<6>", 0.125, 0.3)]}
    assert page["rows"][1]["alternatives"] == {}


def test_continuations_stand_with_the_token_before_which_they_leave():
    rollout = make_rollout()
    rollout.sources = tuple((number, Example("1 + 1 =", "2", {})) for number in range(2))
    mask = torch.tensor([[True, True], [True, False]])
    rows, places, credit = torch.tensor([2, 2]), torch.tensor([1, 1]), torch.tensor([[0.5, 0.3], [-0.5, 7.0]])
    rollout.continuations = Continuations(rows, places, mask.long(), mask, -credit.abs(), credit)
    page = CreditHeatmap(completions=8).collect_page(rollout)
    assert page["rows"][2]["continuations"] == {1: [(2, 0.4), (1, -0.5)]}
    assert page["rows"][0]["continuations"] == {}
    assert "continuation ${number + 1}" in CreditHeatmap().render_html(rollout)


HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "&lt;b&gt;",
    "\u2028",
    "\u202egnp.",
    " " * 200,
]


def drawn(path, profile):
    """The page as a browser leaves it."""
    command = [BROWSER, *FLAGS.split(), f"--user-data-dir={profile}", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_a_browser_draws_the_page(heatmap, tmp_path):
    page, shown = data_of(heatmap), drawn(heatmap, tmp_path / "profile")
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


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_hostile_text_is_text(tmp_path):
    rollout = make_rollout(width=len(HOSTILE))
    rollout.tokens = [HOSTILE[: len(pieces)] for pieces in rollout.tokens]
    rollout.judged = torch.tensor([False] + [True] * 7)
    rollout.sources = tuple((number, Example("</script><i>question</i>", "1", {})) for number in range(2))
    rollout.trail = (("GRPO", rollout.advantages),)
    path = tmp_path / "hostile.html"
    path.write_text(CreditHeatmap().render_html(rollout), encoding="utf-8")
    shown = drawn(path, tmp_path / "profile")
    assert 'data-ready="8"' in shown
    assert "<title>Credit at step 3</title>" in shown
    assert len(re.findall(r"<span[^>]* data-at=", shown)) == int(rollout.mask.sum())
    assert "&lt;/script&gt;&lt;i&gt;question&lt;/i&gt;" in shown
    assert "\\u202egnp." in shown
    assert 'class="verdict unjudged"' in shown
