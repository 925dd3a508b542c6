"""Declarations and conditions of the studies: they can be read, are what they were, and say how they were run."""

import re
from pathlib import Path

import pytest
import yaml

from rlcredit.campaign.declaration import read_declaration
from studies.numbers import find_campaign

ROOT = Path(__file__).parents[2]
CAMPAIGNS = sorted((ROOT / "studies").glob("*/campaigns/*.yaml"))
CONDITIONS = sorted((ROOT / "studies").rglob("conditions/*.yaml"))
FINISHED = {
    "batch_rates": "55989bed73cd",
    "batch_rates_2": "7d50dc8f3f5a",
    "critic_rates": "7c5db3a4a099",
    "equal_tokens_28_prompts": "7a5ab91705b2",
    "equal_tokens_4_prompts": "1cd2aa9fbc94",
    "equal_tokens_aligned": "b7d0252e0f23",
    "equal_tokens_backward": "61637113be6b",
    "equal_tokens_decoy": "d8de7ecc9283",
    "equal_tokens_delayed": "53febedf3a4f",
    "equal_tokens_long_chains": "29e49807cf2f",
    "hard_questions": "f4444c5c3be6",
    "hard_questions_rates": "0e245d21b651",
    "hard_questions_rates_2": "70f0344c458a",
    "hard_questions_rates_3": "fa8d0e6cf976",
    "headline_300": "4cb3d6d5ed2d",
    "headline_best": "73f2a7418e15",
    "headline_collapse": "624662b72875",
    "headline_controls": "f8bb150b028b",
    "headline_rates": "60e5a6c88135",
    "headline_tokens_best": "af6687b95385",
    "headline_tokens_rates": "9cec84857558",
    "headroom_10_12": "5d06d332c135",
    "headroom_2_4": "e43862ae6ca6",
    "headroom_6_8": "4168e0006d19",
    "headroom_operators_10_12": "015c073aea5c",
    "headroom_operators_6_8": "1971103d8397",
    "headroom_optimal_2_4": "d498fff538dc",
    "headroom_optimal_6_8": "5d6c9dea525a",
    "headroom_rate_6_8": "97537be4898b",
    "reused_aligned": "c776cf3273a7",
    "reused_backward": "4e9ebd3ea91f",
    "reused_decoy": "ceb36c2bea0a",
    "reused_delayed": "2e96b75a9532",
    "reused_rates_aligned": "f459b6ce4341",
    "reused_rates_backward": "d676d397cdbb",
    "reused_rates_decoy": "6efb06c33635",
    "reused_rates_delayed": "a7ac2cb918fb",
    "seed_001": "8091f0e410ac",
    "seed_002": "0ba38a8fd7b2",
    "seed_003": "f4d80aed96c5",
    "seed_004": "b5977ba64d66",
    "sepa_lead": "d2dae2978732",
    "tiny_study": "ad3681ae35fb",
    "tiny_study_2": "3db21b346450",
}
"""Studies whose runs are finished, and the declarations they were made by."""


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_every_campaign_is_one_and_its_files_are_found(path):
    declaration = read_declaration(path)
    assert declaration.name == path.stem
    assert f"rlcredit campaign {path.relative_to(ROOT)}" in path.read_text().splitlines()[0]
    assert find_campaign(path.stem) == path


@pytest.mark.parametrize("name", FINISHED)
def test_the_declaration_of_a_finished_study_is_what_it_was(name):
    assert read_declaration(find_campaign(name)).sha256[:12] == FINISHED[name]


@pytest.mark.parametrize("path", CONDITIONS, ids=lambda path: path.stem)
def test_every_condition_is_one_list_and_a_name_and_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    assert content["condition"] == path.stem
    assert content["trainer"].keys() == {"callbacks"}
    header = text.partition("\n")[0]
    assert header.startswith("#")
    assert f"rlcredit fit --config configs/tiny.yaml --config {path.relative_to(ROOT).as_posix()}" in header


def test_a_condition_is_found_by_its_name_alone():
    names = [path.stem for path in [*CONDITIONS, *(ROOT / "configs" / "conditions").rglob("*.yaml")]]
    assert sorted(names) == sorted(set(names))


def test_a_condition_lies_with_the_study_that_alone_names_it():
    for path in CONDITIONS:
        users = {file.parents[1].name for file in CAMPAIGNS if f"/{path.name}" in file.read_text()}
        study = path.relative_to(ROOT / "studies").parts[0]
        assert len(users) > 1 if study == "conditions" else users <= {study}, path


@pytest.mark.parametrize("folder", sorted((ROOT / "studies").glob("*/results")), ids=lambda folder: folder.parent.name)
def test_a_study_names_the_commit_that_each_of_its_results_was_made_at(folder):
    lines = (folder.parent / "commit.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == sorted(path.name for path in folder.iterdir())
    assert all(re.fullmatch(r"\S+ [0-9a-f]{8} \d{4}-\d\d-\d\d", line) for line in lines)
