"""Episodes as blocks, on pages, in notebooks and as messages."""

import re

import pytest
import torch

from rlcredit import Rollout, credit_heatmap
from rlcredit.credit.heatmap import collect_heatmap
from rlcredit.pages.turn_blocks import TurnBlock, list_turn_blocks, write_messages
from tests.browser import BROWSER, draw_page

TOKENS = ["4", "+", "\n", "no", " <b>\n", "5", "\n"]


def make_episodes():
    """Return two rows: one of two turns with an answer between them, and one of a single turn."""
    mask = torch.tensor([[1, 1, 1, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0, 0]]).bool()
    rollout = Rollout(
        step=2,
        group_size=2,
        prompt_ids=torch.ones(2, 1).long(),
        completion_ids=torch.arange(14).view(2, 7),
        mask=mask,
        old_logprobs=torch.zeros(2, 7),
        entropy=torch.zeros(2, 7),
        correct=torch.tensor([1.0, 0.0]),
        tokens=[TOKENS, ["7", "\n"]],
        turn_rewards=torch.tensor([[0.25, 0.75], [0.0, 0.0]]),
    )
    rollout.advantages = torch.arange(14.0).view(2, 7)
    return rollout


def test_a_block_is_a_turn_with_its_reward_and_what_was_answered():
    blocks = make_episodes().list_blocks(0)
    assert blocks == [TurnBlock(0, 3, 0.25, "no <b>"), TurnBlock(3, 5, 0.75, "")]
    assert make_episodes().list_blocks(1) == [TurnBlock(0, 2, 0.0, "")]
    assert list_turn_blocks([-1, -1], [], []) == []


def test_messages_leave_out_the_ends_of_turns():
    rollout = make_episodes()
    assert write_messages(rollout.list_blocks(0), rollout.list_texts(0)) == [
        {"role": "assistant", "content": "4+", "reward": 0.25},
        {"role": "user", "content": "no <b>"},
        {"role": "assistant", "content": "5", "reward": 0.75},
    ]


def test_a_notebook_shows_reward_and_mean_credit_behind_each_turn():
    shown = re.sub(r"<[^>]*>", "", make_episodes()._repr_html_())
    assert "turn 1  4+  reward 0.25, mean credit +1\nno &lt;b&gt;\nturn 2  5  reward 0.75, mean credit +5.5" in shown


def test_numbers_of_a_heatmap_stand_at_sampled_tokens_and_rows_of_one_turn_have_no_blocks():
    rollout = make_episodes()
    row = collect_heatmap(rollout)["rows"][0]
    assert row["tokens"] == ["4", "+", "\n", "5", "\n"]
    assert row["values"][0] == [0, 1, 2, 5, 6]
    assert [turn["end"] for turn in row["turns"]] == [3, 5]
    assert "turns" not in collect_heatmap(rollout.select_rows(torch.tensor([1, 1])))["rows"][0]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_a_page_shows_an_episode_turn_by_turn(tmp_path):
    page = draw_page(credit_heatmap(make_episodes()).save(tmp_path / "page.html"), tmp_path / "profile")
    assert re.findall(r"<b>(turn \d)</b>", page) == ["turn 1", "turn 2", "turn 1"]
    sums = re.findall(r'<span class="sum">([^<]*)', page)
    assert sums[:2] == ["reward 0.250 \u00b7 mean advantages 1.000", "reward 0.750 \u00b7 mean advantages 5.500"]
    assert re.findall(r'<span class="said">([^<]*)', page) == ["no &lt;b&gt;", "", ""]
    assert '<p class="turn-note">' in page
