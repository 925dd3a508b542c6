"""The published campaigns, as declared and as executed: both can be read, and they differ in what they say they do."""

import re
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from rlcredit.campaign.declaration import read_declaration
from rlcredit.campaign.plan_text import explain_seed_shortfall
from rlcredit.config.paths import find_declared_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "studies" / "published" / "campaigns"
FILES = sorted(FOLDER.glob("*.yaml"))
BOTH = "declared_and_executed"
OVERLAYS = sorted((FOLDER.parent / "conditions" / "overlays").glob("*.yaml"))
NAMES = sorted({path.stem.rpartition("_as_")[0] for path in FILES})
DIFFERING = sorted({path.stem.removesuffix("_as_executed") for path in FOLDER.glob("*_as_executed.yaml")})
DIFFERS = "# Differs from the file as declared in:"
SAME = "# Executed as declared, in all that a configuration can say."


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


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
    assert {path.name for path in OVERLAYS} <= {Path(file).name for file in used if "/overlays/" in file}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_campaign_is_one_and_promises_no_verdict_that_it_cannot_reach(path):
    declaration = read_declaration(path)
    assert declaration.name == path.stem
    assert path.read_text().splitlines()[0].endswith(f".  rlcredit campaign studies/published/campaigns/{path.name}")
    assert declaration.exploratory == (explain_seed_shortfall(declaration) is not None)


@pytest.mark.parametrize("name", DIFFERING)
def test_what_was_executed_differs_from_what_was_declared_in_what_the_file_says(name):
    declared, executed = (read_declaration(campaign_file(name, how)) for how in ("declared", "executed"))
    lines = campaign_file(name, "executed").read_text().splitlines()
    told = takewhile(lambda line: line.startswith("#   "), lines[lines.index(DIFFERS) + 1 :])
    keys = [found[1] for line in told if (found := re.match(r"#   (\S+(?: / \S+)?): ", line))]
    assert sorted(keys) == sorted(set(keys))
    assert keys
    assert set(keys) == found_differences(declared, executed)


def found_differences(declared, executed):
    """Name what differs: fields of the campaign, conditions, and of common conditions the places in a run."""
    common = [name for name in declared.conditions if name in executed.conditions]
    lost = [f"conditions.{name}" for name in declared.conditions.keys() ^ executed.conditions.keys()]
    apart = {"name", "configs", "conditions", "settings"}
    fields = [
        {key: value for key, value in each.to_json().items() if key not in apart} for each in (declared, executed)
    ]
    changed = {place.partition(".")[0] for place in list_different_places(*fields)}
    runs = {
        name: set(list_different_places(*(merge_files(each, name) for each in (declared, executed)))) for name in common
    }
    shared = set.intersection(*runs.values()) - {"trainer.callbacks"}  # by the settings; a stack is a condition's own
    return {*lost, *changed, *shared, *(f"{name} / {place}" for name in common for place in runs[name] - shared)}


def merge_files(declaration, condition):
    """Lay the files of a condition, and the settings of the campaign, on top of one another."""
    merged = {}
    for file in (*declaration.configs, *declaration.conditions[condition]):
        lay_over(merged, yaml.safe_load(Path(find_declared_file(file, declaration.folder)).read_text()))
    for key, value in declaration.settings.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        lay_over(merged, value)
    return {key: value for key, value in merged.items() if key != "condition"}


def lay_over(below, above):
    """Put the values of a mapping into another, mapping by mapping."""
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            lay_over(below[key], value)
        else:
            below[key] = value


def list_different_places(one, two, place=""):
    """Yield the dotted keys at which two mappings differ."""
    for key in one.keys() | two.keys():
        values = one.get(key), two.get(key)
        if all(isinstance(value, dict) for value in values):
            yield from list_different_places(*values, f"{place}{key}.")
        elif values[0] != values[1]:
            yield f"{place}{key}"


def test_the_page_has_a_row_for_every_campaign():
    pages = sorted((ROOT / "studies" / "published").glob("*.md"))
    page = "".join(path.read_text(encoding="utf-8") for path in pages)
    rows = {
        row[1]: row.groups()[1:] for row in re.finditer(r"^\| `(\w+)` \| (.+?) \| (\d+) x (\d+) \|", page, re.MULTILINE)
    }
    assert set(rows) == set(NAMES)
    for name, (_, seeds, steps) in rows.items():
        declaration = read_declaration(campaign_file(name, "declared"))
        assert (int(seeds), int(steps)) == (len(declaration.seeds), declaration.steps)
