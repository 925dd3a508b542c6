"""A condition with the code that it names."""

import re
import sys

import pytest
import yaml

from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cards.condition import list_shipped_operators, resolve_card_condition
from rlcredit.cli.explain import find_trainer_stack
from rlcredit.credit.stack_checks import check_stack
from tests.rlcredit.cards.cards import OWN


def test_a_file_of_ones_own_goes_beside_its_condition(own, tmp_path):
    found = resolve_card_condition(str(own))
    written = found.write_files(tmp_path / "card")
    assert yaml.safe_load(written.read_text())["trainer"]["callbacks"] == ["GRPO", "own_doubled.Doubled"]
    assert (written.parent / "own_doubled.py").read_text() == OWN


def test_what_it_imports_from_beside_itself_goes_with_it(own, tmp_path):
    (tmp_path / "own_factors").mkdir()
    (tmp_path / "own_factors" / "two.py").write_text("TWO = 2\n")
    own.write_text(OWN + "\n\nfrom own_factors.two import TWO\n")
    resolve_card_condition(str(own)).write_files(tmp_path / "card")
    assert (tmp_path / "card" / "own_factors" / "two.py").read_text() == "TWO = 2\n"


def test_a_condition_brings_the_modules_beside_it(own, tmp_path):
    (tmp_path / "mine.yaml").write_text("trainer: {callbacks: [GRPO, own_doubled.Doubled]}\n")
    written = resolve_card_condition(str(tmp_path / "mine.yaml")).write_files(tmp_path / "card")
    assert (written.parent / "own_doubled.py").read_text() == OWN


def test_code_that_is_edited_while_it_is_measured_is_refused(own, tmp_path):
    judged = resolve_card_condition(str(own))
    judged.write_files(tmp_path / "card")
    own.write_text(OWN.replace("2 *", "3 *"))
    with pytest.raises(
        ValueError, match=r"own_doubled\.py was edited while Doubled was measured\. Run the command again"
    ):
        judged.refuse_edits()
    with pytest.raises(ValueError, match="Run the command again"):
        judged.write_files(tmp_path / "card")


def test_modules_of_an_earlier_card_do_not_stay(own, tmp_path):
    stale = tmp_path / "card" / "own_doubled" / "__init__.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    resolve_card_condition(str(own)).write_files(tmp_path / "card")
    assert [file.name for file in (tmp_path / "card").rglob("*.py")] == ["own_doubled.py"]


NEEDED = r"has no default for rate\. Name a condition with own_needing\.Doubled\(rate=\.\.\.\)"


def callbacks_of(content):
    return content["trainer"]["callbacks"]


@pytest.mark.parametrize(
    ("name", "stack"),
    [
        ("GRPO", ["GRPO"]),
        ("MaxRL", ["MaxRL"]),
        ("GTPO", ["GRPO", "GTPO"]),
        ("callbacks.tokens.gtpo.GTPO", ["GRPO", "GTPO"]),
        ("HICRA", ["GRPO", "StrategicGrams", "HICRA"]),
    ],
)
def test_an_operator_stands_below_what_it_reads(name, stack):
    assert callbacks_of(resolve_card_condition(name).content) == stack


def test_an_operator_without_credit_of_its_own_is_judged_where_it_is_used():
    found = resolve_card_condition("SEPA")
    assert found.origin == "SEPA"
    assert "SEPA" in callbacks_of(found.content)
    assert found.content["condition"] == found.name == "SEPA"


@pytest.mark.parametrize(
    ("name", "stack"),
    [
        ("Entropy", [{"normalize_std": True}, "Entropy", {"rho": 0.2}]),
        ("SEPA", ["GRPO", "StrategicGrams", {"value": 1.0}, "SEPA", "GTPO"]),
    ],
)
def test_no_new_condition_changes_what_a_name_alone_has_meant(name, stack):
    found = callbacks_of(resolve_card_condition(name).content)
    assert [each["init_args"] if isinstance(each, dict) else each for each in found] == stack


@pytest.mark.parametrize(
    ("call", "name", "stack"),
    [
        (
            "AnnealOut(operator=RSIMask(), delay=0, steps=50)",
            "AnnealOut-operator-RSIMask-delay-0-steps-50",
            ["GRPO", {"operator": "RSIMask", "delay": 0, "steps": 50}],
        ),
        (
            "AnnealOut(operator=HICRA(alpha=0.5))",
            "AnnealOut-operator-HICRA-alpha-0.5",
            ["GRPO", "StrategicGrams", {"operator": {"class_path": "HICRA", "init_args": {"alpha": 0.5}}}],
        ),
        (
            "AnnealOut(operator=SEPA(), steps=3)",
            "AnnealOut-operator-SEPA-steps-3",
            ["GRPO", "StrategicGrams", {"value": 1.0}, {"operator": "SEPA", "steps": 3}, "GTPO"],
        ),
    ],
)
def test_an_operator_around_another_stands_where_that_one_would(call, name, stack):
    found = resolve_card_condition(call)
    assert (found.name, found.origin) == (name, call)
    assert [each["init_args"] if isinstance(each, dict) else each for each in callbacks_of(found.content)] == stack


def test_a_condition_keeps_its_name_and_content():
    found = resolve_card_condition("configs/conditions/sepa_paper/c2_grpo_gtpo.yaml")
    assert found.name == "c2_grpo_gtpo"
    assert callbacks_of(found.content) == ["GRPO", "GTPO"]


def test_one_of_several_operators_of_a_file_is_named(own):
    own.write_text(OWN + OWN.replace("Doubled", "Again"))
    with pytest.raises(ValueError, match=r"found Doubled, Again\. Say own_doubled\.py:Name"):
        resolve_card_condition(str(own))
    again = resolve_card_condition(f"{own}:Again")
    assert (again.name, again.origin) == ("Again", f"{own}:Again")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SignalStats", "is a probe"),
        ("NoSuchOperator", "neither an operator nor the class path of one"),
        ("no_such.yaml", "there is no such condition"),
        ("no_such.py", "there is no such file"),
        ("os.path.join", "neither an operator nor the class path of one"),
        ("gtpo", r"Did you mean `GTPO`\?"),
        ("callbacks.nothing.GTPO", "neither an operator nor the class path of one"),
    ],
)
def test_what_assigns_no_credit_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        resolve_card_condition(name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("my-op.py", OWN, "Rename the file: letters, digits and _"),
        ("2nd.py", OWN, "Rename the file"),
        ("own_leaving.py", "raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("own_needing.py", OWN.replace("    def", "    def __init__(self, rate):\n        pass\n\n    def"), NEEDED),
        ("own_doubled.py:Three", OWN, "expected one operator called Three, found Doubled"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(name, text, message, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    file, _, _ = name.partition(":")
    (tmp_path / file).write_text(text)
    try:
        with pytest.raises(ValueError, match=message):
            resolve_card_condition(str(tmp_path / name))
    finally:
        sys.modules.pop(file.removesuffix(".py"), None)


def test_a_helper_that_is_another_file_is_refused(own, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "own_helper.py").write_text("TWO = 2\n")
    (tmp_path / "own_helper.py").write_text("TWO = 3\n")
    monkeypatch.syspath_prepend(other)
    own.write_text(OWN + "\n\nfrom own_helper import TWO\n")
    try:
        with pytest.raises(ValueError, match=r"another module own_helper is imported already, .*other"):
            resolve_card_condition(str(own))
    finally:
        sys.modules.pop("own_helper", None)


def test_a_condition_that_is_called_as_a_folder_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_text("condition: ../../escaped\ntrainer: {callbacks: [GRPO]}\n")
    with pytest.raises(ValueError, match=r"mine\.yaml: condition: '\.\./\.\./escaped' cannot name a folder"):
        resolve_card_condition(str(tmp_path / "mine.yaml"))


def test_there_are_operators_to_judge():
    assert len(list_shipped_operators()) >= 30


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if place % 4 else ())
        for place, name in enumerate(list_shipped_operators())
    ],
)
def test_every_shipped_operator_leads_to_a_stack_that_is_accepted(name, tmp_path):
    file = resolve_card_condition(name).write_files(tmp_path)
    resolved = resolve_condition(["--config=configs/tiny.yaml", f"--config={file}"])
    check_stack(find_trainer_stack(resolved.trainer))


@pytest.mark.parametrize(
    ("named", "name", "entry"),
    [
        ("GTPO(beta=0.2)", "GTPO-beta-0.2", {"class_path": "GTPO", "init_args": {"beta": 0.2}}),
        ("callbacks.tokens.gtpo.GTPO(beta=0.2)", "GTPO-beta-0.2", {"class_path": "GTPO", "init_args": {"beta": 0.2}}),
        ("GTPO()", "GTPO", "GTPO"),
    ],
)
def test_an_operator_in_call_form_has_these_arguments(named, name, entry):
    condition = resolve_card_condition(named)
    assert condition.name == condition.content["condition"] == name
    assert entry in condition.content["trainer"]["callbacks"]


def test_arguments_replace_those_of_the_shipped_stack():
    stack = resolve_card_condition("LinearLambda(steps=7)").content["trainer"]["callbacks"]
    assert {"class_path": "LinearLambda", "init_args": {"delay": 5, "steps": 7}} in stack


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("GTPO(0.2)", "Write GTPO(beta=0.2)."),
        ("GTPO(betta=0.2)", "`GTPO` has no parameter `betta`. Did you mean `beta`? It accepts beta."),
        ("GTPO(beta=0.2", "has no closing parenthesis."),
    ],
)
def test_a_mistake_in_call_form_is_refused(named, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        resolve_card_condition(named)


def test_a_condition_in_call_form_is_the_condition_in_full(tmp_path):
    (tmp_path / "short.yaml").write_text("condition: x\ntrainer: {callbacks: [GRPO(normalize_std=true)]}")
    full = "condition: x\ntrainer: {callbacks: [{class_path: GRPO, init_args: {normalize_std: true}}]}"
    (tmp_path / "full.yaml").write_text(full)
    short, full = (resolve_card_condition(str(tmp_path / f"{name}.yaml")).content for name in ("short", "full"))
    assert short == full
