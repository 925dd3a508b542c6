"""What earlier code wrote goes on: paths resolve, runs resume, campaigns report, cards stand on boards."""

import importlib
import json
import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch
from jsonargparse._util import get_import_path

from rlcredit.campaign.launchers.local_launcher import LocalLauncher
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.step_timing import measure_conditions
from rlcredit.cards.card import Card
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.cards.leaderboard import write_leaderboard
from rlcredit.cards.ranking import add_shipped_rows
from rlcredit.config.class_paths import import_class_path
from rlcredit.config.code_fingerprint import find_dotted_paths, trace_imported_modules
from rlcredit.config.former_names import FORMER, resolve_former_path
from rlcredit.config.jsonargparse_patches import patch_written_class_paths
from rlcredit.config.strict_yaml import read_yaml
from rlcredit.evaluation.evaluated_policies import CLASS, make_base_policy
from rlcredit.policy.policy import Policy
from rlcredit.report.report_command import run_report_command
from tests.forks import CommandFork

KEPT = Path(__file__).parents[1] / "kept"
CLOCKS = ("time/", "memory", "per_second")
LATER = "train/learning_rate"
"""Metric that the kept run did not write."""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a copy of all that is kept, as the working directory."""
    folder = shutil.copytree(KEPT, tmp_path / "kept")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def load_present_object(path):
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("former", FORMER)
def test_a_former_path_is_imported_as_what_it_is_now(former):
    module, _, name = former.rpartition(".")
    assert resolve_former_path(FORMER[former]) == FORMER[former], "a present name is called former"
    present = load_present_object(FORMER[former])
    if isinstance(present, type) or callable(present):
        assert getattr(importlib.import_module(module), name) is present
    else:
        # Python binds a module below to its parent: under a former name that is one that forwards too.
        values = {name: value for name, value in vars(present).items() if not isinstance(value, ModuleType)}
        public = [name for name in values if not name.startswith("_")]
        forwarding = importlib.import_module(former)
        assert all(getattr(forwarding, each) is getattr(present, each) for each in public)


def test_what_is_nowhere_is_not_found_under_a_former_name():
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from callbacks.base import Nothing  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("rlcredit.engines.nothing")
    assert not hasattr(importlib.import_module("rlcredit.policy"), "Nothing")


@pytest.mark.parametrize("config", sorted(KEPT.glob("runs/*/config.yaml"), key=str), ids=lambda path: path.parent.name)
def test_every_class_path_of_a_saved_configuration_resolves(config, kept):
    ours = [path for path in find_dotted_paths(read_yaml(config)) if path.split(".")[0] in ("rlcredit", "callbacks")]
    assert "rlcredit.engines.in_process.InProcessEngine" in ours
    for path in ours:
        assert isinstance(import_class_path(path), type)


def test_a_saved_configuration_calls_a_policy_as_before():
    patch_written_class_paths()  # as every command does
    assert get_import_path(Policy) == CLASS == "rlcredit.policy.Policy"


def test_a_card_names_an_operator_by_its_former_module(kept):
    assert resolve_card_condition("my_operator.py").name == "Halved"
    traced = trace_imported_modules(["my_operator.Halved"])
    assert {"my_operator", "rlcredit.credit.operator", "rlcredit.formulas.masked"} <= traced.keys()


def test_digests_of_a_policy_name_the_same_folder():
    before = json.loads((KEPT / "evaluations" / "kept" / "settings.json").read_text())["settings"]["policies"]
    assert make_base_policy("tiny").identity() == before["base"] | {
        "settings": {"class_path": CLASS, "init_args": {"path": "tiny"}}
    }
    assert before["base"]["settings"]["class_path"] == CLASS


def test_measured_times_of_a_campaign_are_found_again(kept, capsys):
    declared = read_yaml(kept / "campaign.yaml")
    settings = [f"--{key}={value}" for key, value in declared["settings"].items()]
    arguments = {
        name: ["--config=configs/tiny.yaml", f"--config={file}", *settings, "--trainer.max_steps=2"]
        for name, file in declared["conditions"].items()
    }
    resolutions = {name: resolve_condition(words) for name, words in arguments.items()}
    launcher = LocalLauncher([{"OMP_NUM_THREADS": "1"}])
    found = measure_conditions(arguments, resolutions, launcher, kept / "campaigns" / "kept", measure=False)
    assert found.keys() == declared["conditions"].keys()


def test_a_campaign_is_reported(kept, capsys):
    assert run_report_command(["campaign.yaml"]) == 0
    assert "maxrl_sepa against grpo: undecided" in capsys.readouterr().out


def test_a_card_stands_on_a_board(kept):
    cards = Card.read_all(kept / "cards")
    assert [card.name for card in cards] == ["Halved"]
    page = write_leaderboard(add_shipped_rows(cards), kept / "cards", own=["Halved"])
    assert "Halved" in Path(page).read_text()


def test_a_postmortem_is_read():
    (file,) = KEPT.glob("runs/spoiled-seed0/**/*.pt")
    content = torch.load(file, weights_only=True)
    assert content["step"] == 1


def run_command(folder, *words):
    process = CommandFork(["-m", "rlcredit", *words], folder, {**os.environ, "OMP_NUM_THREADS": "1"})
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out + err


def read_metrics(record):
    """Return all metrics of a record by step, without those that no two runs share."""
    steps = {}
    for entry in map(json.loads, record.read_text().splitlines()):
        own = {
            name: value
            for name, value in entry.get("metrics", {}).items()
            if not any(map(name.count, (*CLOCKS, LATER)))
        }
        steps.setdefault(entry.get("step"), {}).update(own)
    return steps


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint_as_if_never_stopped(kept):
    run_command(kept, "fit", "--config=runs/kept-seed0/config.yaml", "--ckpt_path=last", "--trainer.max_steps=6")
    went_on, whole = (read_metrics(kept / file) for file in ("runs/kept-seed0/record.jsonl", "whole.jsonl"))
    assert went_on.keys() == whole.keys()
    for step, metrics in whole.items():
        # The kept run took place on one processor; another one rounds otherwise.
        assert went_on[step] == pytest.approx(metrics, rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_a_run_is_validated_exported_and_sampled(kept):
    run = "runs/kept-seed0"
    run_command(kept, "validate", f"--config={run}/config.yaml", f"--ckpt_path={run}/checkpoints/last.ckpt")
    assert "step 4" in run_command(kept, "export", "--ckpt_path", run, "--out", "exported")
    question = ("--question", "4 + 3 =", "--completions", "1", "--max_tokens", "4")
    by_run = run_command(kept, "sample", "--ckpt_path", run, *question)
    by_adapter = run_command(kept, "sample", "--adapter", f"{run}/adapter", "--model", "tiny", *question)
    assert by_run.split("\n")[1:] == by_adapter.split("\n")[1:]


@pytest.mark.slow
def test_an_evaluation_has_been_answered_already(kept):
    asked = ("--tasks", "configs/tasks/chain_sum_3_5.yaml", "--ckpt_path", "runs/kept-seed0", "--against", "base")
    how = ("--questions", "4", "--completions", "2")
    before = (kept / "evaluations" / "kept" / "batches.jsonl").read_bytes()
    run_command(kept, "evaluate", *asked, *how, "--out", "evaluations/kept", "--mlflow", "none")
    assert (kept / "evaluations" / "kept" / "batches.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_campaign_has_finished_and_takes_a_seed(kept):
    words = ("campaign", "campaign.yaml", "--slots", "1", "--threads", "1")
    said = run_command(kept, *words)
    assert "4 of 4 runs are finished." in said
    assert "measuring" not in said
    declared = (kept / "campaign.yaml").read_text()
    (kept / "campaign.yaml").write_text(declared.replace("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    said = run_command(kept, *words)
    assert "4 of 6 runs are finished." in said
    assert "6 of 6 runs are finished" in said
