"""A campaign read back from its folder as tables."""

import shutil
from pathlib import Path

import pytest

from rlcredit import read_campaign

KEPT = Path(__file__).parents[2] / "kept" / "campaigns" / "kept"


def test_an_older_campaign_is_one_table_by_condition_seed_and_step():
    campaign = read_campaign(KEPT)
    assert list(campaign.runs.index) == [("grpo", 0), ("maxrl_sepa", 0), ("grpo", 1), ("maxrl_sepa", 1)]
    assert set(campaign.runs["state"]) == {"finished"}
    assert campaign.metrics.index.names == ["condition", "seed", "step"]
    assert campaign.metrics.loc[("grpo", 0, 2), "val/pass_at_1"] == 0.1875


def test_held_out_answers_say_whose_they_are():
    answers = read_campaign(KEPT).held_out
    assert list(answers.columns) == ["condition", "seed", "step", "set", "question", "sample", "right"]
    mean = answers.groupby(["condition", "seed", "step"])["right"].mean()
    assert mean["grpo", 0, 2] == 0.1875


def test_a_run_that_has_not_begun_is_left_out(tmp_path):
    shutil.copytree(KEPT, tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept" / "grpo" / "seed1")
    assert ("grpo", 1) not in read_campaign(tmp_path / "kept").runs.index


def test_a_folder_without_a_campaign_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"holds no campaign: there is no ledger\.json in it"):
        read_campaign(tmp_path)
