"""The page of colours, for any rollout with any ledgers."""

import json
import re

import pytest
import torch

from callbacks import GRPO, GTPO, Entropy
from rlcredit import CreditStack, Rollout, credit_heatmap
from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.heatmap import collect_heatmap, colour_scale
from rlcredit.tasks.example import Example
from tests.browser import BROWSER, draw_page, find_overflow
from tests.callbacks.rollouts import episodes_of
from tests.conftest import make_rollout


def test_colours_are_full_where_few_values_are_larger():
    assert colour_scale(torch.arange(-100.0, 1.0)) == 98
    assert colour_scale(torch.tensor([0.0] * 999 + [-4.0])) == 4
    assert colour_scale(torch.zeros(3)) == 1


def test_tokens_with_credit_in_place_of_another_stand_with_it():
    rollout = make_rollout()
    rollout.trail = (("ExpectedGradient", rollout.advantages),)
    rollout.sources = tuple((number, Example("1 + 1 =", "2", {})) for number in range(2))
    two, one = torch.tensor([0, 0]), torch.tensor([1, 1])
    rollout.alternatives = WeightedTokens(
        two, one, torch.tensor([5, 6]), torch.tensor([0.25, 0.125]).log(), torch.tensor([-0.5, 0.3])
    )
    page = collect_heatmap(rollout)
    assert page["rows"][0]["alternatives"] == {1: [("<5>", 0.25, -0.5), ("<6>", 0.125, 0.3)]}
    assert page["rows"][1]["alternatives"] == {}


def test_continuations_stand_with_the_token_before_which_they_leave():
    rollout = make_rollout()
    rollout.sources = tuple((number, Example("1 + 1 =", "2", {})) for number in range(2))
    mask = torch.tensor([[True, True], [True, False]])
    rows, places, credit = torch.tensor([2, 2]), torch.tensor([1, 1]), torch.tensor([[0.5, 0.3], [-0.5, 7.0]])
    rollout.continuations = Continuations(rows, places, mask.long(), mask, -credit.abs(), credit)
    page = collect_heatmap(rollout)
    assert page["rows"][2]["continuations"] == {1: [(2, 0.4), (1, -0.5)]}
    assert page["rows"][0]["continuations"] == {}
    assert "continuation ${number + 1}" in credit_heatmap(rollout)


def test_an_episode_shows_its_sampled_tokens_and_what_leaves_before_them():
    rollout = episodes_of(["abXYcZd", "ab"], [1.0, 0.0])
    one, mask = torch.tensor([0]), torch.tensor([[True, False, True]])
    rollout.alternatives = WeightedTokens(one, one + 4, one + 65, torch.zeros(1), torch.ones(1))
    rollout.continuations = Continuations(one, one + 6, mask.long(), mask, -torch.ones(1, 3), torch.ones(1, 3))
    row = collect_heatmap(rollout)["rows"][0]
    assert row["tokens"] == ["a", "b", "c", "d"]
    assert row["alternatives"] == {2: [("65", 1.0, 1.0)]}
    assert row["continuations"] == {3: [(2, 1.0)]}
    assert {len(values) for values in row["values"]} == {4}


def make_bare_rollout():
    """A batch of tensors alone, as a trainer of one's own has it: no text, no entropy, no log-probability."""
    mask = torch.tensor([[True, True, False], [True, False, True], [False, False, False], [True, True, True]])
    return Rollout(
        step=7,
        group_size=2,
        prompt_ids=torch.tensor([[-1, 9]] * 2 + [[8, 9]] * 2),
        completion_ids=torch.arange(12).view(4, 3),
        mask=mask,
        old_logprobs=torch.zeros(4, 3),
        entropy=torch.zeros(4, 3),
        correct=torch.tensor([1.0, 0.0, 0.3, -2.0]),
        tokens=[[]] * 4,
    )


def test_a_batch_of_bare_tensors_shows_token_ids_its_rewards_and_nothing_that_nobody_knows():
    page = collect_heatmap(make_bare_rollout())
    assert [layer["name"] for layer in page["layers"]] == ["advantages"]
    assert page["stack"] == "advantages"
    assert [row["tokens"] for row in page["rows"]] == [["0 ", "1 "], ["3 ", "5 "], ["9 ", "10 ", "11 "]]
    assert [row["prompt"] for row in page["rows"]] == ["prompt 1", "prompt 1", "prompt 2"]
    assert [row["values"][0] for row in page["rows"]] == [[1, 1], [0, 0], [-2, -2, -2]]


def test_a_completion_without_credit_says_that_its_group_is_of_equal_rewards():
    rollout = make_bare_rollout()
    rollout.mask = torch.ones(4, 3, dtype=torch.bool)
    rollout.rewards = torch.tensor([1.0, 1.0, 1.0, 0.0])
    rollout.trail = (("GRPO", torch.tensor([0.0, 0.0, 0.5, -0.5])[:, None].expand(4, 3)),)
    rows = collect_heatmap(rollout)["rows"]
    assert [row.get("absent") for row in rows] == 2 * ["no credit: rewards of its group are equal"] + [None, None]


def test_texts_of_tokens_and_prompts_are_decoded_where_nobody_gave_them():
    page = collect_heatmap(make_bare_rollout(), decode=lambda ids: [f"<{token}>" for token in ids])
    assert [row["tokens"] for row in page["rows"]][1] == ["<3>", "<5>"]
    assert [row["prompt"] for row in page["rows"]] == ["<9>", "<9>", "<8><9>"]
    known = collect_heatmap(make_rollout(), decode=lambda ids: ["no"] * len(ids))
    assert known["rows"][0]["tokens"] == make_rollout().tokens[0]


def test_ledgers_that_are_given_stand_in_place_of_the_trail_each_with_its_name():
    rollout = CreditStack([GRPO(), Entropy(), GTPO(beta=0.5)]).assign(make_rollout())
    assert [layer["name"] for layer in collect_heatmap(rollout)["layers"]] == ["GRPO", "GTPO", "entropy", "surprisal"]
    mine = torch.arange(8.0) - 4
    page = credit_heatmap(rollout, {"mine": mine.bfloat16(), "theirs": rollout.advantages}, completions=2)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [layer["name"] for layer in data["layers"]] == ["mine", "theirs", "entropy", "surprisal"]
    assert [{*row["values"][0]} for row in data["rows"]] == [{-4}, {3}]
    assert [label for label, _ in rollout.trail] == ["GRPO", "GTPO"]
    assert '"stack": "advantages"' in credit_heatmap(rollout, mine)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.zeros(3), r"mine has shape \(3,\), expected \(4, 3\) as the mask, or one value per completion"),
        (torch.zeros(4, 3).index_fill(1, torch.tensor([1]), torch.inf), "mine is inf at row 0, token 1"),
    ],
)
def test_ledgers_that_are_none_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        credit_heatmap(make_bare_rollout(), {"mine": values})


def test_numbers_outside_the_mask_are_never_shown():
    values = torch.full((4, 3), torch.nan).where(~make_bare_rollout().mask, 0.5)
    assert "NaN" not in credit_heatmap(make_bare_rollout(), values)


HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "&lt;b&gt;",
    "\u2028",
    "\u202egnp.",
    " " * 200,
]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_hostile_text_is_text(tmp_path):
    rollout = make_rollout(width=len(HOSTILE))
    rollout.tokens = [HOSTILE[: len(pieces)] for pieces in rollout.tokens]
    rollout.judged = torch.tensor([False] + [True] * 7)
    rollout.sources = tuple((number, Example("</script><i>question</i>", "1", {})) for number in range(2))
    rollout.trail = (("GRPO", rollout.advantages),)
    path = tmp_path / "hostile.html"
    assert credit_heatmap(rollout).save(path) == path
    shown = draw_page(path, tmp_path / "profile")
    assert 'data-ready="8"' in shown
    assert "<title>Credit at step 3</title>" in shown
    assert len(re.findall(r"<span[^>]* data-at=", shown)) == int(rollout.mask.sum())
    assert "&lt;/script&gt;&lt;i&gt;question&lt;/i&gt;" in shown
    assert "\\u202egnp." in shown
    assert 'class="verdict unjudged"' in shown


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_rewards_that_are_no_verdicts_are_shown_as_numbers(tmp_path):
    rollout = make_bare_rollout()
    rollout.mask, rollout.judged = torch.ones(4, 3, dtype=torch.bool), torch.tensor([True, True, True, False])
    shown = draw_page(credit_heatmap(rollout).save(tmp_path / "page.html"), tmp_path / "profile")
    facts = re.findall(r'<span class="verdict ?(\w*)">([^<]*)', shown)
    assert facts == [
        ("right", "right, reward 1.000"),
        ("", "wrong, reward 0.000"),
        ("unjudged", "reward 0.300"),
        ("unjudged", "not judged"),
    ]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
def test_a_page_of_long_lines_fits_a_desk_and_a_phone_and_every_line_names_its_ticks(tmp_path):
    rollout = make_rollout(width=40)
    rollout.tokens = [["antidisestablishment "] * len(pieces) for pieces in rollout.tokens]
    rollout.trail = (("GRPO", rollout.advantages),)
    page = credit_heatmap(rollout, completions=1, run="grpo-seed0").save(tmp_path / "page.html")
    assert find_overflow(page, tmp_path / "profile") == {}
    shown = draw_page(page, tmp_path / "profile")
    assert 'class="key again"' in shown
    assert "<title>grpo-seed0: credit at step 3</title>" in shown
