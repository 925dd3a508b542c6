"""Every shipped condition: its list is parsed, checked, and trained for three steps, or with two rollouts."""

import ast
import copy
import functools
import math
import re
import warnings
from difflib import SequenceMatcher
from pathlib import Path

import pytest
import torch
import yaml
from jsonargparse import ArgumentParser
from lightning.pytorch import Callback

from callbacks import StackWarning, check_stack
from rlcredit.cli.application import CONFIG_ROOTS
from rlcredit.cli.explain import render_call as explain_call
from rlcredit.config.class_paths import patch_jsonargparse
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.stack_checks import explain_idle_operators
from rlcredit.losses import PolicyLoss
from rlcredit.policy.policy import Policy
from rlcredit.training.dynamic_sampling import DynamicSampling
from tests.shipped_conditions import CASES, CONDITIONS, FOLDER

ROOT = Path(__file__).parents[2]
OPERATORS = find_operator_classes()  # imports them, so that a condition may name each


@functools.cache
def make_parser():
    """A parser of the stack of a condition and what else it sets."""
    patch_jsonargparse()
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--condition", type=str)
    parser.add_argument("--trainer.callbacks", type=list[Callback], default=[])
    parser.add_argument("--model.loss", type=PolicyLoss | None, default=None)
    parser.add_argument("--model.dynamic_sampling", type=DynamicSampling | None, default=None)
    parser.add_argument("--model.updates_per_rollout", type=int, default=1)
    parser.add_argument("--model.minibatches", type=int, default=1)
    parser.add_argument("--model.sampling", type=dict, default={})
    parser.add_argument("--model.optimizer", type=dict, default={})
    parser.add_argument("--data", type=dict, default={})
    return parser


def condition(path: Path):
    """The stack of a condition and what else it sets, as objects."""
    parser = make_parser()
    content = expand_call_forms(yaml.safe_load(path.read_text()), CONFIG_ROOTS)
    return parser.instantiate_classes(parser.parse_object(content))


@pytest.mark.parametrize("path", CASES)
def test_the_call_form_means_the_same_as_class_path_and_init_args(path):
    content = yaml.safe_load(path.read_text())
    assert expand_call_forms(content, CONFIG_ROOTS) == spell_out(content)


def spell_out(value):
    """Return a value whose calls are spelt out as Python reads them, and their arguments as YAML does."""
    if isinstance(value, dict):
        return {key: spell_out(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [spell_out(inner) for inner in value]
    if not isinstance(value, str) or "(" not in value:
        return value
    call = ast.parse(value.replace("=lambda", "='lambda'"), mode="eval").body
    arguments = {keyword.arg: spell_out(yaml.safe_load(ast.unparse(keyword.value))) for keyword in call.keywords}
    return {"class_path": ast.unparse(call.func), "init_args": arguments} if arguments else ast.unparse(call.func)


@pytest.fixture(scope="module")
def fresh_policy():
    """One policy for all conditions; the function gives it back as it was first."""
    policy = Policy()
    policy.load(seed=0)
    first = copy.deepcopy(policy.state_dict())

    def fresh():
        policy.load_state_dict(first)
        return policy

    return fresh


@pytest.mark.parametrize("path", CASES)
def test_every_condition_trains(path, fit, fresh_policy, task):
    described = condition(path)
    stack = described.trainer.callbacks
    lr = described.model.optimizer.get("init_args", {}).get("lr", 1e-3)
    updates = described.model.updates_per_rollout
    elsewhere = ("optimizer", "sampling")
    how = {name: value for name, value in vars(described.model).items() if name not in elsewhere and value is not None}
    steps, max_tokens = (3, 20) if updates == 1 else (2 * updates, 32)  # two rollouts of twenty have no right answer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StackWarning)  # the caps that cannot be reached say so
        run = fit(steps=steps, stack=stack, policy=fresh_policy(), lr=lr, max_tokens=max_tokens, task=task, **how)
    assert described.condition == path.stem
    assert len(run.history) == steps
    assert all(math.isfinite(value) for step in run.history for value in step.values())
    logged = {name.split("/")[1] for name in run.history[-1] if name.startswith("credit/")}
    silent = {operator.label for operator in stack if hasattr(operator, "every_n_steps")}
    assert {operator.label for operator in stack} - silent == logged
    moved = any(weight.any() for name, weight in run.adapter.items() if "lora_B" in name)
    assert moved == (lr > 0)


def test_a_condition_is_found_by_its_name_alone():
    names = [path.stem for path in CONDITIONS]
    assert sorted(names) == sorted(set(names))
    assert {len(path.relative_to(FOLDER).parts) for path in CONDITIONS} == {2}


def test_the_conditions_of_the_paper_are_there_and_those_that_the_documentation_names():
    names = {path.stem for path in CONDITIONS}
    assert {name.split("_")[0] for name in names} >= {f"c{number}" for number in range(1, 9)}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "configs").rglob("*.yaml")]
    named = {
        name
        for page in pages
        for name in re.findall(r"configs/conditions/\w+/(\w+)\.yaml", page.read_text(encoding="utf-8"))
    }
    assert named <= names


def test_every_condition_is_one_list_and_a_name_and_says_how_to_run_it():
    for path in CONDITIONS:
        text = path.read_text(encoding="utf-8")
        assert yaml.safe_load(text)["trainer"].keys() == {"callbacks"}
        header = text.partition("\n")[0]
        assert header.startswith("#")
        assert f"rlcredit fit --config configs/tiny.yaml --config {path.relative_to(ROOT).as_posix()}" in header


@functools.cache
def stack_of(path):
    """Return the stack of a condition, to be looked at only."""
    return condition(path).trainer.callbacks


def test_every_operator_is_in_some_condition():
    used = {type(operator) for path in CONDITIONS for operator in stack_of(path)}
    assert used == set(OPERATORS) - {kind for kind in OPERATORS if kind.__name__ == "Surprisal"}


def without_probes(path):
    return [explain_call(operator) for operator in stack_of(path) if operator.writes]


def places(one, two):
    """Return where two lists differ."""
    return [code for code in SequenceMatcher(None, one, two, autojunk=False).get_opcodes() if code[0] != "equal"]


def test_a_condition_of_maxrl_and_sepa_differs_from_c8_in_one_place():
    stacks = {path.stem: without_probes(path) for path in CONDITIONS}
    c8 = stacks.pop("c8_maxrl_sepa")
    variants = {name: stack for name, stack in stacks.items() if stack[:1] == c8[:1] and "SEPA" in "".join(stack)}
    assert variants
    assert {name: len(places(c8, stack)) for name, stack in variants.items()} == dict.fromkeys(variants, 1)


def test_only_the_caps_that_grpo_cannot_reach_are_called_out():
    told = {path.stem: explain_idle_operators(stack_of(path), 16) for path in CONDITIONS}
    assert {name for name, messages in told.items() if messages} == {"grpo_cap5"}
    assert "|A| <= 0.9375 above it" in told["grpo_cap5"][0]


def test_every_condition_is_a_program_without_a_trainer():
    for path in CONDITIONS:
        check_stack(stack_of(path))


def test_the_published_mask_keeps_every_token_where_most_are_certain(rollout):
    published = condition(next(path for path in CONDITIONS if path.stem == "entropy_mask_published"))
    rollout.signal = torch.zeros_like(rollout.signal)
    rollout.signal[::4, 0] = 1.0  # one uncertain token a group
    metrics = published.trainer.callbacks[-1].assign(rollout)
    assert metrics["requested_fraction"] == 0.2
    assert metrics["kept_fraction"] == 1.0
