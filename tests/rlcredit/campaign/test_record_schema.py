"""Damaged files of a campaign: each is named, with what is wrong in it and what to do."""

import json

import pytest

from rlcredit.campaign.campaign_record import CampaignRecord, discard_refused_campaign
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.campaign.run_state import read_run_evaluation, read_run_status

OUTCOME = {
    "step": 5,
    "metrics": {"val/pass_at_1": 0.5},
    "numbers": [0, 1],
    "questions_sha256": "2",
    "right": [[1], [0]],
}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty."),
        ("{", "not JSON (Expecting property name"),
        ("[]", "its content is [], not a mapping."),
        ("{}", "cells is missing."),
        ('{"cells": {"a": 1}}', "cells.a is 1, not a mapping."),
        ('{"cells": {"a": {"seconds": true}}}', "cells.a.seconds is True, not a number."),
        ('{"cells": {}, "threads": "2"}', "threads is '2', not a whole number."),
        ("[" * 100_000, "not readable as JSON"),
    ],
)
def test_a_damaged_ledger_is_named(tmp_path, text, problem):
    (tmp_path / "ledger.json").write_text(text)
    with pytest.raises(ValueError, match=r"ledger\.json is damaged: ") as refused:
        CampaignRecord(tmp_path)
    assert problem in str(refused.value)
    assert "Restore it from a copy" in str(refused.value)


def test_a_ledger_with_a_password_is_refused(tmp_path):
    (tmp_path / "ledger.json").write_text('{"cells": {}, "configs": {"a": {"uri": "http://u:SECRET@h"}}}')
    with pytest.raises(ValueError, match=r"configs\.a\.uri: the address holds a password") as refused:
        CampaignRecord(tmp_path)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [{"right": [[1]]}, {"right": [[1], []]}, {"right": [[1], [2]]}, {"right": None}, {"numbers": []}, {"metrics": [1]}],
)
def test_a_damaged_evaluation_is_named(tmp_path, change):
    spec = RunSpec("grpo", 0, tmp_path)
    path = spec.run_folder.evaluation_file(5)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(OUTCOME))
    assert read_run_evaluation(spec, 5) == OUTCOME
    path.write_text(json.dumps({**OUTCOME, **change}))
    with pytest.raises(ValueError, match=r"step_000005\.json is damaged: .* Remove it; the run is then made anew\."):
        read_run_evaluation(spec, 5)


def test_a_damaged_status_is_named(tmp_path):
    spec = RunSpec("grpo", 0, tmp_path)
    spec.folder.mkdir(parents=True)
    (spec.folder / "status.json").write_text('{"step": "five"}')
    with pytest.raises(ValueError, match=r"status\.json is damaged: step is 'five', not a number or null\. Remove it"):
        read_run_status(spec)


def test_a_refused_campaign_leaves_no_folder(tmp_path):
    def refused(root):
        with discard_refused_campaign(root):
            root.mkdir(exist_ok=True)
            (root / "settings.yaml").touch()
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(ValueError, match="refused"):
        refused(tmp_path / "old")
    assert (tmp_path / "old").exists()
