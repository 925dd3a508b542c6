"""The published campaigns, as declared and as executed: both are accepted, and they differ in what they say they do."""

import re
import sys
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace

import pytest

from callbacks import check_stack
from rlcredit.campaign.config_differences import list_differences
from rlcredit.campaign.declaration import read_declaration
from rlcredit.campaign.plan_text import explain_seed_shortfall, list_evaluation_steps
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.run_spec import RunSpec, build_fit_arguments, render_settings
from rlcredit.cli.application import CONFIG_ROOTS, CreditCLI, run_credit_cli
from rlcredit.config.reader import read_configuration
from tests.slow_cases import mark_others_slow

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "configs" / "campaigns" / "published"
FILES = sorted(FOLDER.glob("*.yaml"))
BOTH = "declared_and_executed"
OVERLAYS = sorted(FOLDER.glob("overlays/*.yaml"))
NAMES = sorted({path.stem.rpartition("_as_")[0] for path in FILES})
DIFFERING = sorted({path.stem.removesuffix("_as_executed") for path in FOLDER.glob("*_as_executed.yaml")})
DIFFERS = "# Differs from the file as declared in:"
SAME = "# Executed as declared, in all that a configuration can say."


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


class Parse(CreditCLI):
    """Parse, and make nothing; its parser can be used again."""

    def before_instantiate_classes(self):
        pass

    def instantiate_classes(self):
        pass

    def run_subcommand(self, subcommand):
        pass


@pytest.fixture(scope="module")
def parser():
    given, sys.argv = sys.argv, ["rlcredit"]
    try:
        return run_credit_cli(["explain", f"--config={ROOT / 'configs' / 'tiny.yaml'}"], Parse).get_subcommand_parser(
            "explain"
        )
    finally:
        sys.argv = given


@pytest.fixture
def given(tmp_path):
    """What the run of a condition would be given."""

    def of(declaration, condition):
        settings = tmp_path / "settings.yaml"
        settings.write_text(render_settings(declaration.settings))
        return build_fit_arguments(RunSpec(condition, declaration.seeds[0], tmp_path), declaration, 1, settings)

    return of


def campaign_file(name, how):
    """One file says both where a campaign was executed as declared."""
    both = FOLDER / f"{name}_as_{BOTH}.yaml"
    return both if both.exists() else FOLDER / f"{name}_as_{how}.yaml"


def test_a_campaign_is_there_twice_or_was_executed_as_declared():
    assert set(FILES) == {campaign_file(name, how) for name in NAMES for how in ("declared", "executed")}
    assert [path for path in FILES if SAME in path.read_text()] == sorted(FOLDER.glob(f"*_as_{BOTH}.yaml"))


def test_every_overlay_is_used():
    declarations = [read_declaration(path) for path in FILES]
    used = {file for each in declarations for files in (each.configs, *each.conditions.values()) for file in files}
    assert {str(path.relative_to(ROOT)) for path in OVERLAYS} <= used


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_campaign_is_one_and_promises_no_verdict_that_it_cannot_reach(path):
    declaration = read_declaration(path)
    assert declaration.name == path.stem
    assert path.read_text().splitlines()[0].endswith(f".  rlcredit campaign configs/campaigns/published/{path.name}")
    assert declaration.exploratory == (explain_seed_shortfall(declaration) is not None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_last_policy_is_measured(path, given):
    declaration = read_declaration(path)
    for condition in declaration.conditions:
        trainer = files(declaration, condition, given)["trainer"]
        leaves = {"trainer": {**trainer, "max_steps": declaration.steps}}
        assert list_evaluation_steps(SimpleNamespace(leaves=leaves, task=SimpleNamespace(validation_size=512)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_parser_takes_the_last_condition(name, parser, given):
    declaration = read_declaration(campaign_file(name, "executed"))
    config = parser.parse_args(given(declaration, list(declaration.conditions)[-1]))
    check_stack(parser.instantiate_classes(config).trainer.callbacks)


@pytest.mark.parametrize("path", mark_others_slow(OVERLAYS, fast=8), ids=lambda path: path.stem)
def test_the_parser_takes_every_overlay(path, parser):
    below = ["configs/base.yaml", "configs/models/qwen3_4b.yaml", "configs/conditions/sepa_paper/c1_grpo.yaml"]
    config = parser.parse_args([f"--config={file}" for file in (*below, path)])
    check_stack(parser.instantiate_classes(config).trainer.callbacks)


@pytest.mark.parametrize(
    ("name", "condition"), [("ppo_dualclip", "grpo_1e-6_dual"), ("sepa_semantic_30b", "maxrl_sepa"), ("full", "grpo")]
)
def test_a_condition_resolves_as_a_campaign_resolves_it(name, condition, given):
    said = resolve_condition(given(read_declaration(campaign_file(name, "executed")), condition)).parameters
    assert said["task"].startswith("MATH(path='EleutherAI/hendrycks_math', name='intermediate_algebra'")
    assert (said["prompts_per_step"], said["completions"]) == (8, 16)


@pytest.mark.parametrize("name", DIFFERING)
def test_what_was_executed_differs_from_what_was_declared_in_what_the_file_says(name, given):
    declared, executed = (read_declaration(campaign_file(name, how)) for how in ("declared", "executed"))
    lines = campaign_file(name, "executed").read_text().splitlines()
    told = takewhile(lambda line: line.startswith("#   "), lines[lines.index(DIFFERS) + 1 :])
    keys = [found[1] for line in told if (found := re.match(r"#   (\S+(?: / \S+)?): ", line))]
    assert sorted(keys) == sorted(set(keys))
    assert keys
    assert set(keys) == found_differences(declared, executed, given)


def found_differences(declared, executed, given):
    """Name what differs: fields of the campaign, conditions, and of common conditions the places in a run."""
    common = [name for name in declared.conditions if name in executed.conditions]
    lost = [f"conditions.{name}" for name in declared.conditions.keys() ^ executed.conditions.keys()]
    apart = {"name", "configs", "conditions", "settings"}
    fields = [
        {key: value for key, value in each.to_json().items() if key not in apart} for each in (declared, executed)
    ]
    changed = {re.split(r"[.\[:]", told)[0] for told in list_differences(*fields)}
    runs = {}
    for name in common:
        merged = [files(each, name, given) for each in (declared, executed)]
        runs[name] = {re.split(r"[\[:]", told)[0] for told in list_differences(*merged)}
    shared = set.intersection(*runs.values()) - {"trainer.callbacks"}  # by the settings; a stack is a condition's own
    return {*lost, *changed, *shared, *(f"{name} / {place}" for name in common for place in runs[name] - shared)}


def files(declaration, condition, given):
    """Lay the files of a condition on top of one another."""
    words = [word for word in given(declaration, condition) if word.startswith("--config=")]
    merged = read_configuration(words, CONFIG_ROOTS).values
    return {key: value for key, value in merged.items() if key != "condition"}


def test_the_page_has_a_row_for_every_campaign():
    page = (ROOT / "docs" / "studies" / "published_campaigns.md").read_text(encoding="utf-8")
    rows = {
        row[1]: row.groups()[1:] for row in re.finditer(r"^\| `(\w+)` \| (.+?) \| (\d+) x (\d+) \|", page, re.MULTILINE)
    }
    assert set(rows) == set(NAMES)
    for name, (_, seeds, steps) in rows.items():
        declaration = read_declaration(campaign_file(name, "declared"))
        assert (int(seeds), int(steps)) == (len(declaration.seeds), declaration.steps)
