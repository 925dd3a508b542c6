"""As declared, as executed: every field goes through the parser and comes out as it went in."""

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rlcredit.campaign.config_differences import flatten_config, hash_config, list_differences, list_run_differences
from rlcredit.cli.application import CreditCLI, run_credit_cli

CONFIGS = Path(__file__).parents[3] / "configs"
TEXTS = {"condition", "experiment_name", "tracking_uri", "path", "instruction", "filename"}
"""Leaves that may hold any text; the others name a class, or one of a few words."""


class Parse(CreditCLI):
    """Parse, and make nothing."""

    def before_instantiate_classes(self):
        self.declared = self.config["explain"]

    def instantiate_classes(self):
        pass

    def run_subcommand(self, subcommand):
        pass


def parsed(*configs):
    given, sys.argv = sys.argv, ["rlcredit"]
    try:
        cli = run_credit_cli(["explain", *(f"--config={config}" for config in configs)], Parse)
    finally:
        sys.argv = given
    return yaml.safe_load(cli.get_subcommand_parser("explain").dump(cli.declared, skip_none=False))


def says_something(text):
    """Where there may be no text, jsonargparse takes for none what YAML does; a campaign then reports a difference.

    Nor is 1e5 a text to it, which YAML writes without quotes.
    """
    if re.fullmatch(r"[\d_]+e\d+", text):
        return False
    try:
        return yaml.safe_load(text) is not None
    except yaml.YAMLError:
        return True


def other(leaf):
    """Values of a leaf's type that are not the leaf."""
    kinds = {
        bool: st.just(not leaf),
        int: st.integers(1, 10**6),
        float: st.floats(1e-12, 1e6, allow_nan=False),
        str: st.text("abcdefghijklmnopqrstuvwxyz_0123456789: #'\"{}\n", min_size=1).filter(says_something),
    }
    return kinds[type(leaf)].filter(lambda value: value != leaf)


def fixed(name, leaf):
    return leaf in (None, [], {}) or (isinstance(leaf, str) and name.rpartition(".")[2] not in TEXTS)


def changed(node, draw, path=""):
    """Change every leaf at once that is not fixed, in lists and nested mappings too."""
    if isinstance(node, dict):
        return {key: changed(value, draw, f"{path}.{key}") for key, value in node.items()}
    if isinstance(node, list):
        return [changed(value, draw, path) for value in node]
    if path == ".condition":
        return draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).filter(says_something))
    return node if fixed(path, node) else draw(other(node))


@pytest.fixture(scope="module")
def resolved():
    systems = CONFIGS / "conditions" / "systems"
    return parsed(
        CONFIGS / "base.yaml", CONFIGS / "models" / "qwen3_4b.yaml", systems / "erpo.yaml", systems / "tepo.yaml"
    )


@settings(
    max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_every_field_arrives_nested_ones_too(resolved, tmp_path, data):
    wanted = changed(resolved, data.draw)
    names = [name for name, leaf in flatten_config(resolved).items() if not fixed(name, leaf)]
    assert len(names) > 60
    assert [told.partition(": ")[0] for told in list_differences(resolved, wanted)] == names
    saved = tmp_path / "config.yaml"
    saved.write_text(yaml.safe_dump(wanted))
    assert list_differences(wanted, parsed(saved)) == []


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tampered_configuration_is_found(resolved, tmp_path, data):
    leaves = {name: leaf for name, leaf in flatten_config(resolved).items() if leaf not in ([], {}, None)}
    name = data.draw(st.sampled_from(sorted(leaves)))
    value = data.draw(other(leaves[name]))
    tampered = json.loads(json.dumps(resolved))
    place, path = tampered, name.replace("[", ".[").split(".")
    keys = [int(part[1:-1]) if part.startswith("[") else part for part in path]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tampered))
    (tmp_path / "parameters.json").write_text('{"max_steps": 100}')
    found = list_run_differences(tmp_path, resolved, {"max_steps": 100})
    assert found == [f"{name}: declared {leaves[name]!r}, executed {value!r}"]
    assert hash_config(tampered) != hash_config(resolved)


def test_a_dropped_field_a_type_and_an_object_are_found(tmp_path):
    (tmp_path / "config.yaml").write_text("model: {lr: 1}\n")
    (tmp_path / "parameters.json").write_text('{"stack": "GRPO"}')
    declared = {"model": {"lr": True, "eta": 0.5}}
    assert list_run_differences(tmp_path, declared, {"stack": "GRPO > Delight(eta=0.5)"}) == [
        "model.lr: declared True, executed 1",
        "model.eta: declared 0.5, executed nothing",
        "instantiated stack: declared 'GRPO > Delight(eta=0.5)', executed 'GRPO'",
    ]


def test_a_run_that_stored_nothing_is_no_run_as_declared(tmp_path):
    assert list_run_differences(tmp_path, {}, {}) == [
        "config.yaml, parameters.json: not written, so nobody knows what was executed"
    ]
