"""Runs that crash, hang or leave half of what they should, next to runs that do not."""

import json
import signal
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from rlcredit.campaign import run_process, run_state
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration, DeclaredBudget
from rlcredit.campaign.launchers.local_launcher import LocalLauncher
from rlcredit.campaign.process_identity import identify_machine, kill_recorded_process, read_start_time
from rlcredit.campaign.resolved_condition import fingerprint_own_code
from rlcredit.campaign.run_spec import RunSpec, list_run_specs
from rlcredit.campaign.run_view import LiveRunTable, RunEventLines
from rlcredit.campaign.scheduler import RunScheduler
from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint

STAND_IN = """
import json, pathlib, sys
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
folder = pathlib.Path(words["trainer.default_root_dir"])
tried = folder.parent / f"tried_{folder.name}"
before = tried.read_text() if tried.exists() else ""
tried.write_text(before + "x")
name = f"{words['condition']}{words['seed_everything']}"
if name == "bad0" or (name == "bad1" and not before):
    sys.exit("CUDA out of memory, or so")
(folder / "held_out").mkdir()
for step in (0, 2):
    outcome = {"step": step, "metrics": {"val/pass_at_1": step / 4}}
    outcome |= {"numbers": [0], "questions_sha256": "0", "right": [[1]]}
    (folder / "held_out" / f"step_{step:06d}.json").write_text(json.dumps(outcome))
executed = {"seed_everything": int(words["seed_everything"]), "threads": 1, "lr": 0.1}
executed["trainer"] = {"default_root_dir": words["trainer.default_root_dir"]}
if name == "good1":
    del executed["lr"]
(folder / "config.yaml").write_text(json.dumps(executed))
(folder / "parameters.json").write_text(json.dumps({"stack": words["condition"]}))
"""


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """Four runs by a stand-in: bad0 always crashes, bad1 once, good1 loses a setting on the way."""
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr(run_process, "build_run_command", lambda given: [sys.executable, str(script), *given])
    declaration = CampaignDeclaration("x", (), {"good": (), "bad": ()}, "good", (0, 1), 2, "val/pass_at_1", 0.02)
    leaves = {"seed_everything": 9, "threads": 9, "lr": 0.1, "trainer": {}}
    kinds = {name: SimpleNamespace(leaves=leaves, parameters={"stack": name}) for name in declaration.conditions}
    parent = SimpleNamespace(child_environment=lambda spec: {}, kill_open_attempts=lambda spec: None)
    return RunScheduler(
        declaration,
        kinds,
        [0, 2],
        LocalLauncher([{"OMP_NUM_THREADS": "1"}]),
        tmp_path / "settings.yaml",
        CampaignRecord(tmp_path),
        parent,
    )


def test_a_crash_never_stops_the_others_and_is_tried_twice(scheduler, tmp_path, capsys):
    scheduler.launcher = LocalLauncher(2 * [{"OMP_NUM_THREADS": "1"}])
    scheduler.run_missing(list_run_specs(scheduler.declaration, tmp_path), RunEventLines())
    known = {name: (spec["state"], spec["attempts"]) for name, spec in scheduler.ledger.content["cells"].items()}
    assert known == {
        "good/seed0": ("finished", 1),
        "bad/seed0": ("failed", 2),
        "good/seed1": ("finished", 1),
        "bad/seed1": ("finished", 2),
    }
    assert scheduler.ledger.run_entry(RunSpec("bad", 1, tmp_path))["primary"] == 0.5
    out = capsys.readouterr().out
    assert Counter(line.split()[0] for line in out.splitlines() if "/seed" in line) == {
        "begins": 6,
        "finished": 3,
        "crashed": 2,
        "FAILED": 1,
        "DIFFERS": 1,
    }
    assert "    CUDA out of memory, or so\n" in out
    assert (tmp_path / "bad" / "seed0" / "log.txt").read_text().count("CUDA") == 2


def test_a_run_that_lost_a_setting_is_marked(scheduler, tmp_path):
    scheduler.run_missing(list_run_specs(scheduler.declaration, tmp_path), RunEventLines())
    assert scheduler.ledger.run_entry(RunSpec("good", 1, tmp_path))["differences"] == [
        "lr: declared 0.1, executed nothing"
    ]
    fine = scheduler.ledger.run_entry(RunSpec("good", 0, tmp_path))
    assert fine["differences"] == []
    assert fine["declared_sha256"] == fine["executed_sha256"]


def test_what_is_interrupted_leaves_no_process(scheduler, tmp_path):
    class Interrupting(RunEventLines):
        def redraw(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scheduler.run_missing(list_run_specs(scheduler.declaration, tmp_path), Interrupting())
    assert scheduler.ledger.run_entry(RunSpec("good", 0, tmp_path))["state"] == "running"


SLOW_STAND_IN = """
import pathlib, signal, sys, time
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
folder = pathlib.Path(words["trainer.default_root_dir"])
def save(number, frame):
    (folder / "saved").touch()
    if words["condition"] == "good":
        sys.exit(143)
signal.signal(signal.SIGTERM, save)
(folder / "ready").touch()
time.sleep(60)
"""


def test_runs_of_an_interrupted_campaign_are_asked_to_save_and_killed_if_they_do_not_end(
    scheduler, tmp_path, monkeypatch
):
    (tmp_path / "stand_in.py").write_text(SLOW_STAND_IN)
    monkeypatch.setattr(run_process, "STOP_SECONDS", 0.5)
    scheduler.launcher = LocalLauncher(2 * [{"OMP_NUM_THREADS": "1"}])
    runs = list_run_specs(scheduler.declaration, tmp_path)[:2]

    class Interrupting(RunEventLines):
        def redraw(self):
            if all((spec.folder / "ready").exists() for spec in runs):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scheduler.run_missing(runs, Interrupting())
    assert {spec.name: (spec.folder / "saved").exists() for spec in runs} == {"good/seed0": True, "bad/seed0": True}
    assert [process.poll() for process in scheduler.launcher.processes.values()] == [143, -signal.SIGKILL]


def written(path, checkpoint):
    with path.open("w+b") as file:
        write_sealed_checkpoint(checkpoint, file)


def test_a_checkpoint_without_its_evaluation_is_not_continued(tmp_path):
    spec = RunSpec("grpo", 0, tmp_path)
    assert not run_state.can_continue_run(spec, [0, 2, 4])
    last = spec.run_folder.last_checkpoint
    last.parent.mkdir(parents=True)
    written(last, {"global_step": 2})
    (spec.folder / "held_out").mkdir()
    whole = {"step": 0, "metrics": {}, "numbers": [0], "questions_sha256": "0", "right": [[1]]}
    (spec.folder / "held_out" / "step_000000.json").write_text(json.dumps(whole))
    assert not run_state.can_continue_run(spec, [0, 2, 4])
    (spec.folder / "held_out" / "step_000002.json").write_text(json.dumps(whole))
    assert run_state.can_continue_run(spec, [0, 2, 4])
    (spec.folder / "held_out" / "step_000002.json").unlink()
    written(last, {"global_step": 2, "evaluation_owed": True})
    assert run_state.can_continue_run(spec, [0, 2, 4])
    last.write_bytes(last.read_bytes()[:100])
    assert not run_state.can_continue_run(spec, [0, 2, 4])
    spec.run_folder.remove_contents()
    assert list(spec.folder.iterdir()) == []


def test_a_run_with_a_budget_is_continued_if_every_mark_it_has_reached_was_evaluated(tmp_path):
    spec, budget = RunSpec("grpo", 0, tmp_path), DeclaredBudget(decoded_tokens=100, evaluations=4)
    last, held_out = spec.run_folder.last_checkpoint, spec.folder / "held_out"
    for folder in (last.parent, held_out):
        folder.mkdir(parents=True)
    counted = dict.fromkeys(("prefill", "forward", "backward", "decoded_by_probes"), 0)
    whole = {"metrics": {}, "numbers": [0], "questions_sha256": "0", "right": [[1]]}

    def evaluated(step, tokens):
        content = {**whole, "step": step, "tokens": {**counted, "decoded": tokens}}
        (held_out / f"step_{step:06d}.json").write_text(json.dumps(content))

    def continues(step, tokens, owed=False):
        written(last, {"global_step": step, "token_counts": {"decoded": tokens}, "evaluation_owed": owed})
        return run_state.can_continue_run(spec, budget.marks, budget)

    evaluated(0, 0)
    assert continues(2, 24)
    assert not continues(3, 26)
    assert continues(3, 26, owed=True)
    evaluated(3, 55)  # the first step over two marks, 25 and 50
    assert continues(4, 60)
    assert not continues(5, 76)
    assert not continues(2, 26), "an evaluation of a later step is of another policy"
    assert run_state.locate_run_evaluations(spec, budget) == {0: 0, 25: 3, 50: 3}
    written(last, {"global_step": 2})
    assert not run_state.can_continue_run(spec, budget.marks, budget), "a checkpoint without counts"


def test_an_orphan_is_ended_and_a_stranger_with_its_number_is_not(tmp_path):
    record = tmp_path / "process.json"
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    own = read_start_time(sleeper.pid)
    record.write_text(json.dumps({"pid": sleeper.pid, "started": f"{own}0", "machine": identify_machine()}))
    kill_recorded_process(record)
    assert sleeper.poll() is None
    record.write_text(json.dumps({"pid": sleeper.pid, "started": own, "machine": "another"}))
    kill_recorded_process(record)
    assert sleeper.poll() is None
    record.write_text(json.dumps({"pid": sleeper.pid, "started": own, "machine": identify_machine()}))
    kill_recorded_process(record)
    assert sleeper.wait(5) == -9
    assert read_start_time(sleeper.pid) is None
    kill_recorded_process(record)
    kill_recorded_process(tmp_path / "nothing.json")


def test_the_table_shows_every_run_and_events_above_it(capsys):
    with LiveRunTable(lambda: [("grpo/seed0", "running", "5/10", "0.500", "0.457", "10 s")]) as view:
        view.print_event("begins     grpo/seed0")
        view.redraw()
    out = capsys.readouterr().out
    assert out.startswith("begins     grpo/seed0\n")
    assert all(word in out for word in ("solve rate", "held out", "eta", "running", "5/10", "0.457", "10 s"))


def test_no_run_begins_with_code_that_has_changed(scheduler, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_marker.py").write_text("MARK = 1\n")
    scheduler.resolutions["good"].leaves["operator"] = "own_marker.Marked"
    scheduler.ledger.fix_declaration(
        {"declaration": {"name": "x"}, "code": fingerprint_own_code(scheduler.resolutions.values())}
    )
    (tmp_path / "own_marker.py").write_text("MARK = -1\n")
    with pytest.raises(ValueError, match=r"code\.own_marker: was '\w+', is now '\w+'"):
        scheduler.run_missing(list_run_specs(scheduler.declaration, tmp_path), RunEventLines())
    assert scheduler.ledger.content["cells"] == {}


def test_runs_that_go_on_are_waited_for_when_code_has_changed(scheduler, tmp_path, monkeypatch):
    refusals = iter([None, None])
    monkeypatch.setattr(type(scheduler), "_find_edited_code", lambda _: next(refusals, ValueError("edited")))
    with pytest.raises(ValueError, match="edited"):
        scheduler.run_missing(list_run_specs(scheduler.declaration, tmp_path), RunEventLines())
    states = [cell["state"] for cell in scheduler.ledger.content["cells"].values()]
    assert states[0] == "finished"
    assert "running" not in states
