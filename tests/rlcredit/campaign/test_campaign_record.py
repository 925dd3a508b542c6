"""One file that is whole at every moment, one process that writes it, one declaration."""

import json

import pytest

from rlcredit.campaign.campaign_record import CampaignRecord, lock_campaign
from rlcredit.campaign.run_spec import RunSpec

FIXED = {"declaration": {"name": "x", "effect": 0.02}, "configs": {"grpo": {"model": {"lr": 0.1}}}}


def test_what_is_noted_is_on_the_disk(tmp_path):
    spec = RunSpec("grpo", 0, tmp_path)
    ledger = CampaignRecord(tmp_path)
    ledger.fix_declaration(FIXED)
    ledger.update_run(spec, state="running", attempts=1)
    ledger.update_run(spec, state="finished", primary=0.5)
    again = CampaignRecord(tmp_path)
    assert again.run_entry(spec) == {"state": "finished", "attempts": 1, "primary": 0.5}
    assert again.is_finished(spec)
    assert not again.is_finished(RunSpec("grpo", 1, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.json"]


def test_a_changed_declaration_is_refused_with_what_has_changed(tmp_path):
    CampaignRecord(tmp_path).fix_declaration(FIXED)
    CampaignRecord(tmp_path).fix_declaration(FIXED)
    CampaignRecord(tmp_path).update_run(RunSpec("grpo", 0, tmp_path), state="running")
    changed = json.loads(json.dumps(FIXED))
    changed["declaration"]["effect"] = 0.5
    changed["configs"]["grpo"]["model"]["lr"] = 0.2  # an overlay was edited, the campaign file was not
    with pytest.raises(ValueError, match="the declaration of campaign x has changed") as refused:
        CampaignRecord(tmp_path).fix_declaration(changed)
    told = str(refused.value)
    assert "  declaration.effect: was 0.02, is now 0.5\n" in told
    assert "  configs.grpo.model.lr: was 0.1, is now 0.2\n" in told
    assert told.endswith("Undo the change, or give the changed campaign another name.")
    assert CampaignRecord(tmp_path).content["declaration"]["effect"] == 0.02


def test_code_of_ones_own_that_has_changed_is_refused(tmp_path):
    CampaignRecord(tmp_path).fix_declaration({**FIXED, "code": {"own_operator": "1f", "own_parts": "2e"}})
    with pytest.raises(ValueError, match=r"\n  code\.own_operator: was '1f', is now '3d'\nUndo the change"):
        CampaignRecord(tmp_path).fix_declaration({**FIXED, "code": {"own_operator": "3d", "own_parts": "2e"}})


def test_a_ledger_older_than_what_is_fixed_is_gone_on_with(tmp_path):
    CampaignRecord(tmp_path).fix_declaration(FIXED)
    CampaignRecord(tmp_path).fix_declaration({**FIXED, "code": {"own_operator": "1f"}})
    assert CampaignRecord(tmp_path).content["code"] == {"own_operator": "1f"}
    with pytest.raises(ValueError, match="has changed"):
        CampaignRecord(tmp_path).fix_declaration({**FIXED, "code": {"own_operator": "2e"}})


def declared(**changed):
    return {"name": "x", "seeds": [0, 1], "effect": 0.02, "exploratory": True, **changed}


def test_an_exploratory_campaign_takes_more_seeds_and_nothing_else(tmp_path):
    ledger = CampaignRecord(tmp_path)
    ledger.fix_declaration({"declaration": declared()})
    assert ledger.added_seeds(declared()) == []
    assert ledger.added_seeds(declared(seeds=[0, 1, 2, 5])) == [2, 5]
    for other in ({"seeds": [1, 0, 2]}, {"seeds": [0]}, {"seeds": [0, 1, 2], "effect": 0.5}, {"exploratory": False}):
        assert ledger.added_seeds(declared(**other)) == []
    ledger.add_seeds(declared(seeds=[0, 1, 2]), "ab")
    ledger.add_seeds(declared(seeds=[0, 1, 2, 3]), "cd")
    content = CampaignRecord(tmp_path).content
    assert (content["declaration"]["seeds"], content["seeds_added"], content["sha256"]) == ([0, 1, 2, 3], [2, 3], "cd")


def test_a_confirmatory_campaign_says_how_its_runs_are_used_again(tmp_path):
    ledger = CampaignRecord(tmp_path / "x")
    ledger.fix_declaration({"declaration": declared(exploratory=False)})
    with pytest.raises(ValueError, match=r"remove .*ledger\.json to fix it as it is now"):
        ledger.fix_declaration({"declaration": declared(exploratory=False, seeds=[5])})
    ledger.update_run(RunSpec("grpo", 0, tmp_path), state="running")
    more = declared(exploratory=False, seeds=[0, 1, 2])
    assert ledger.added_seeds(more) == []
    with pytest.raises(ValueError, match=r"seeds\[2\]: was nothing, is now 2") as refused:
        ledger.fix_declaration({"declaration": more})
    root = tmp_path / "x"
    assert f"cp -r {root} {tmp_path / 'NAME'} && rm {tmp_path / 'NAME'}/ledger.json" in str(refused.value)


def test_two_processes_cannot_run_one_campaign(tmp_path):
    with (
        lock_campaign(tmp_path / "x"),
        pytest.raises(ValueError, match="another process runs the campaign in"),
        lock_campaign(tmp_path / "x"),
    ):
        pass
    with lock_campaign(tmp_path / "x"):
        pass
