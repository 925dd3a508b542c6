"""Call forms of a configuration are expanded where a class is expected, and nowhere else."""

import pytest

from callbacks import GTPO
from rlcredit.cli.application import CONFIG_ROOTS
from rlcredit.config.call_form import CallFormError
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.credit.catalogue import import_operators

import_operators()


@pytest.mark.parametrize(
    "place",
    [
        {"trainer": {"callbacks": ["GRPO", "%s"]}},
        {"trainer": {"callbacks+": ["%s"]}},
        {"trainer": {"callbacks": [{"class_path": "CounterfactualProbe", "init_args": {"stacks": {"a": ["%s"]}}}]}},
        {"model": {"loss": {"class_path": "KLPenalty", "init_args": {"loss": "%s"}}}},
        {"model": {"optimizer": "%s", "scheduler": "%s", "engine": "%s"}},
        {"data": "%s"},
    ],
    ids=str,
)
def test_where_a_class_is_expected(place):
    def write(node, entry):
        if isinstance(node, dict):
            return {key: write(value, entry) for key, value in node.items()}
        return [write(each, entry) for each in node] if isinstance(node, list) else entry if node == "%s" else node

    expanded = expand_call_forms(write(place, "F(x=1)"), CONFIG_ROOTS)
    assert expanded == write(place, {"class_path": "F", "init_args": {"x": 1}})


@pytest.mark.parametrize(
    "content",
    [
        {"condition": "F(x=1)"},
        {"trainer": {"default_root_dir": "runs(1)", "accelerator": "F(x=1)"}},
        {"data": {"class_path": "ReasoningGym", "init_args": {"instruction": "F(x=1)", "config": {"a": "F(x=1)"}}}},
        {"model": {"policy": {"path": "models(1)"}}},
        {"unknown": "F(x=1)"},
    ],
    ids=str,
)
def test_a_text_stays_a_text(content):
    assert expand_call_forms(content, CONFIG_ROOTS) == content


def test_nested_entries_are_expanded_in_turn():
    content = {"model": {"loss": "KLPenalty(beta=0.1, loss=ClippedSurrogate(high=0.28))"}}
    inner = {"class_path": "ClippedSurrogate", "init_args": {"high": 0.28}}
    expected = {"class_path": "KLPenalty", "init_args": {"beta": 0.1, "loss": inner}}
    assert expand_call_forms(content, CONFIG_ROOTS) == {"model": {"loss": expected}}


def test_a_mistake_is_named_by_its_place_and_the_parameter_of_the_class():
    assert GTPO.__name__ == "GTPO"
    with pytest.raises(CallFormError, match=r"^trainer.callbacks\[1\]: `0.1` has no name. Write GTPO\(beta=0.1\)."):
        expand_call_forms({"trainer": {"callbacks": ["GRPO", "GTPO(0.1)"]}}, CONFIG_ROOTS)
    with pytest.raises(CallFormError, match=r"^model.loss: YAML reads `GSPO\(x=\{a: ...` as a mapping. Inside "):
        expand_call_forms({"model": {"loss": {"GSPO(x={a": "1})"}}}, CONFIG_ROOTS)
