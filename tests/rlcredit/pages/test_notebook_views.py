import re

import pytest
import torch

from callbacks import GRPO
from rlcredit import Card, CardView, CreditStack, credit_heatmap
from rlcredit.pages.notebook_views import InlinePage, render_credit_rows
from tests.conftest import make_rollout
from tests.small_runs import ROOT


def test_colours_are_as_strong_as_the_credit():
    """The largest, 2, has strength 0.7; one half of it has 0.35, on the other colour."""
    shown = render_credit_rows("", [("right", [("a", 2.0), ("b", -1.0)])], "")
    assert re.findall(r"rgba\(([\d,.]+)\)", shown) == ["46,160,67,0.70", "218,54,51,0.35"]


def test_what_a_policy_says_is_no_markup():
    shown = render_credit_rows("<b>", [("<i>", [("<script>", 0.0)])], "&")
    assert not re.search("<(script|b|i)>", shown)
    assert "&lt;script&gt;" in shown


def test_a_page_stands_in_a_frame_of_its_own():
    shown = InlinePage('<p class="a">4</p>')._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;p class=&quot;a&quot;&gt;4&lt;/p&gt;"')


def test_a_rollout_shows_verdict_and_credit_of_its_completions():
    rollout = make_rollout()
    rollout.judged = torch.tensor([True] * 7 + [False])
    shown = rollout._repr_html_()
    assert "right" in shown
    assert "wrong" in shown
    assert "Rollout at step 3: 2 prompts x 4 completions" in shown
    assert re.findall(r"prompt \d: (\w+)", shown) == [
        "right",
        "wrong",
        "wrong",
        "right",
        "wrong",
        "wrong",
        "wrong",
        "unjudged",
    ]


def test_a_reward_that_is_no_verdict_is_shown_as_a_number(rollout):
    rollout.task_rewards = 0.6 * rollout.correct
    rollout.judged[1] = False
    shown = rollout._repr_html_()
    assert "right" not in shown
    for label in ("reward 0.6", "wrong", "unjudged"):
        assert label in shown


def test_the_heat_map_of_a_rollout_without_questions_is_a_page_for_a_notebook():
    credited = CreditStack([GRPO()]).assign(make_rollout())
    page = credit_heatmap(credited)
    assert page.startswith("<!doctype html>")
    assert '"stack": "GRPO"' in page
    assert page._repr_html_().startswith("<iframe srcdoc=")


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "kept" / "cards").rglob("*.json")), ids=str)
def test_an_older_card_shows_its_page(path):
    assert Card.read(path).name in CardView.read(path)._repr_html_()
