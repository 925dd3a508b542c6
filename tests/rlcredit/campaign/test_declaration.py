"""What a campaign file may say, and the one message it gets otherwise."""

import re
from pathlib import Path

import pytest
import yaml

from rlcredit.campaign.campaign_command import run_campaign_command
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration, parse_declaration, read_declaration
from rlcredit.campaign.run_spec import (
    build_fit_arguments,
    derive_question_seed,
    list_end_arguments,
    list_run_specs,
    render_settings,
)
from rlcredit.config.reader import read_configuration

ROOT = Path(__file__).parents[3]
SMOKE = yaml.safe_load((ROOT / "configs" / "campaigns" / "tiny_smoke.yaml").read_text())


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "campaigns").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_campaign_is_one(path):
    assert read_declaration(path).name == path.stem
    assert f"rlcredit campaign configs/campaigns/{path.name}" in path.read_text().splitlines()[0]


def test_the_runs_of_a_seed_come_together(tmp_path):
    names = [spec.name for spec in list_run_specs(parse_declaration(SMOKE), tmp_path)]
    assert names == ["grpo/seed0", "maxrl_sepa/seed0", "grpo/seed1", "maxrl_sepa/seed1"]


def test_the_first_question_is_answered_first(tmp_path):
    names = ("grpo", "maxrl_sepa", "rloo")
    conditions = dict.fromkeys(names, "configs/conditions/sepa_paper/c1_grpo.yaml")
    families = {"a": {"baseline": "rloo", "conditions": ["grpo"]}}
    found = list_run_specs(parse_declaration({**SMOKE, "conditions": conditions, "families": families}), tmp_path)
    assert [spec.name for spec in found] == [
        *("rloo/seed0", "grpo/seed0", "rloo/seed1", "grpo/seed1"),
        *("maxrl_sepa/seed0", "maxrl_sepa/seed1"),
    ]


def test_a_run_is_the_command_that_a_person_would_type():
    declaration = parse_declaration(SMOKE)
    spec = list_run_specs(declaration, Path("campaigns/tiny_smoke"))[3]
    assert build_fit_arguments(spec, declaration, 2, Path("settings.yaml")) == [
        "--config=configs/tiny.yaml",
        "--config=configs/conditions/sepa_paper/c8_maxrl_sepa.yaml",
        "--config=settings.yaml",
        "--seed_everything=1",
        "--condition=maxrl_sepa",
        "--threads=2",
        "--trainer.max_steps=10",
        "--trainer.default_root_dir=campaigns/tiny_smoke/maxrl_sepa/seed1",
    ]


def test_settings_keep_their_types():
    settings = {"a.b": [0.9, 0.95], "a.c": None, "d": "1", "e.f": True}
    assert yaml.safe_load(render_settings(settings)) == {"a": {"b": [0.9, 0.95], "c": None}, "d": "1", "e": {"f": True}}


@pytest.mark.parametrize(
    ("written", "instead", "place"),
    [
        ("seeds: [0, 1]", "seeds: [0, 0]", "4: seeds: 0 occurs twice"),
        ("baseline: a", "baseline: b", "3: baseline: there is no condition 'b'"),
        ("steps: 2", "stepz: 2", "5: stepz: no such key"),
        ("effect: 0.1", "effect: x", "6: effect: expected"),
        ("effect: 0.1", "effect: 2", "6: effect: 2 is 200 percentage points. Say 0.02 for 2 of them."),
        (
            "steps: 2",
            "steps: 2\nthreads: 2",
            "6: threads: a key of a configuration. Write what it says under `settings`.",
        ),
    ],
)
def test_a_fault_of_a_declaration_names_its_file_and_line(tmp_path, written, instead, place):
    file = tmp_path / "first.yaml"
    lines = ["name: first", "conditions: {a: []}", "baseline: a", "seeds: [0, 1]", "steps: 2", "effect: 0.1"]
    text = "\n".join([*lines, "primary: val/pass_at_1", "configs: []"])
    file.write_text(text.replace(written, instead))
    with pytest.raises(ValueError, match=re.escape(f"{file}:{place}")):
        read_declaration(file)


def test_a_configuration_in_place_of_a_campaign_is_refused_as_such():
    with pytest.raises(ValueError, match="trainer: a key of a configuration, which this file is"):
        parse_declaration({"trainer": {"max_steps": 3}})


def test_a_setting_of_one_operator_is_written_as_in_a_file():
    settings = yaml.safe_load(render_settings({"trainer.callbacks.GTPO.beta": 0.3, "trainer.max_steps": 2}))
    assert settings == {"trainer.callbacks.GTPO.beta": 0.3, "trainer": {"max_steps": 2}}


def test_a_message_about_a_setting_names_the_declaration(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(render_settings({"model.samplng.completions": 4}, "first.yaml:9: settings"))
    configuration = read_configuration(["fit", f"--config={file}"], {})
    assert configuration.locate("model.samplng: no such key.") == "first.yaml:9: settings: model.samplng: no such key."


def test_the_hash_is_of_the_content_not_of_the_writing():
    assert parse_declaration(SMOKE).sha256 == parse_declaration(dict(reversed(SMOKE.items()))).sha256
    assert parse_declaration(SMOKE).sha256 != parse_declaration({**SMOKE, "effect": 0.03}).sha256


def test_a_shipped_condition_may_be_filed_elsewhere_and_another_is_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "configs/conditions/c1.yaml", "configs/conditions/paper/c1.yaml", "configs/conditions/paper/c2.yaml"
    for file in ("configs/tiny.yaml", *names):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    flat, filed, other = (parse_declaration({**SMOKE, "conditions": {"grpo": name}}) for name in names)
    assert filed.conditions["grpo"] == ("configs/conditions/paper/c1.yaml",)
    assert filed.to_json() == flat.to_json()
    assert filed.sha256 == flat.sha256 != other.sha256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trainer": {}}, "trainer: a key of a configuration. Write what it says under `settings`."),
        ({"sedes": [1]}, "sedes: no such key. Did you mean `seeds`? There are name, configs, "),
        ({"configs": ["configs/tyni.yaml"]}, "configs: there is no file configs/tyni.yaml; paths are relative to"),
        (
            {"conditions": {"grpo": "nowhere.yaml"}},
            "conditions.grpo: there is no file nowhere.yaml; paths are relative to",
        ),
        (
            {"conditions": {"../grpo": "configs/tiny.yaml"}},
            "conditions: '../grpo' cannot name a folder. Write letters, digits,",
        ),
        ({"seeds": [0, 1, 0]}, "seeds: 0 occurs twice, and one run must not count twice. Remove one."),
        ({"seeds": 3}, "seeds: expected a list of numbers from 0 to 4294967295, got 3."),
        ({"baseline": "rloo"}, "baseline: there is no condition 'rloo'. There are grpo, maxrl_sepa."),
        ({"steps": "ten"}, "steps: expected a number of optimizer steps, at least 1, got 'ten'."),
        ({"steps": None}, "steps: expected a number of optimizer steps, at least 1, got None."),
        (
            {"budget": {"decoded_tokens": 100}},
            "budget: a run ends after so many steps or so many tokens. Keep `steps` or",
        ),
        (
            {"steps": None, "budget": {"update_flops": 100}},
            "budget: expected {decoded_tokens | backward_tokens | rollout_tokens: NUMBER, evaluations: NUMBER}",
        ),
        ({"steps": None, "budget": {"evaluations": 2}}, "budget: expected {decoded_tokens | backward_tokens"),
        ({"steps": None, "budget": 100}, "budget: expected {decoded_tokens | backward_tokens"),
        (
            {"steps": None, "budget": {"decoded_tokens": 1.5}},
            "budget.decoded_tokens: expected a whole number, at least 1, got 1.5.",
        ),
        (
            {"steps": None, "budget": {"decoded_tokens": 3, "evaluations": 4}},
            "budget.evaluations: expected at most one per token, got 4.",
        ),
        ({"primary": "train/solve_rate"}, "primary: expected a held-out metric, one of val/pass_at_1, val/pass_at_k"),
        (
            {"primary": "val/entropy"},
            "primary: expected a held-out metric, one of val/pass_at_1, val/pass_at_k, got 'val",
        ),
        (
            {"conditions": {"report": "configs/tiny.yaml"}},
            "conditions: report is the name of a file of the campaign itself. Give th",
        ),
        (
            {"summary": "slope"},
            "summary: expected end, area, steadiness, or {level: SHARE} with a share between 0 and 1, got 'slope'.",
        ),
        (
            {"summary": {"level": 1.5}},
            "summary: expected end, area, steadiness, or {level: SHARE} with a share between 0 and 1",
        ),
        (
            {"held_out": {"questions": "mine"}},
            "held_out: expected {questions: by_seed, draws: by_seed}, or shared, got",
        ),
        ({"held_out": "by_seed"}, "held_out: expected {questions: by_seed, draws: by_seed}, or shared, got 'by_seed'."),
        (
            {"families": {"# x": {"baseline": "grpo", "conditions": ["maxrl_sepa"]}}},
            "families: '# x' must be one line without < > | [ ] #, since it",
        ),
        ({"effect": 0}, "effect: expected a number above 0 in the unit of the primary metric, got 0."),
        ({"exploratory": "yes"}, "exploratory: expected true or false, got 'yes'."),
        (
            {"families": {"a": {"baseline": "grpo"}}},
            "families.a: expected {baseline: NAME, conditions: [NAME, ...]}, got",
        ),
        ({"families": {"a": {"baseline": "grpo", "conditions": ["grpo"]}}}, "families.a: a condition occurs twice."),
        (
            {"families": {"a": {"baseline": "c", "conditions": ["grpo"]}}},
            "families.a: there is no condition 'c'. There",
        ),
        (
            {"families": {"a": {"baseline": "grpo", "conditions": []}}},
            "families.a.conditions: expected names of conditions, with at le",
        ),
        ({"settings": {"trainer.max_steps": 5}}, "settings: trainer.max_steps follows from `steps`. Remove it here."),
        ({"settings": {"a": 1, "a.b": 2}}, "settings: a.b lies inside the value of another setting. Keep one of"),
    ],
)
def test_a_mistake_gets_one_readable_message(capsys, tmp_path, change, message):
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump({**SMOKE, **change}))
    assert run_campaign_command([str(path), "--plan", f"--out={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_plan_of_a_changed_declaration_is_refused_as_the_campaign_is(capsys, tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump(SMOKE))
    CampaignRecord(tmp_path / SMOKE["name"]).fix_declaration({"declaration": read_declaration(path).to_json()})
    path.write_text(yaml.safe_dump({**SMOKE, "effect": 0.5}))
    assert run_campaign_command([str(path), "--plan", f"--out={tmp_path}"]) == 2
    assert "  declaration.effect: was " in capsys.readouterr().err


def test_what_is_missing_is_asked_for(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in SMOKE.items() if key not in ("effect", "seeds")}))
    with pytest.raises(
        ValueError, match=r"seeds, effect: missing from the declaration\. Fix them before the first run"
    ):
        read_declaration(path)


def test_a_condition_cannot_silently_replace_another(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text("name: x\nconditions:\n  grpo: a.yaml\n  grpo: b.yaml\n")
    with pytest.raises(ValueError, match="grpo occurs twice; the second would replace the first"):
        read_declaration(path)


def test_a_condition_that_moved_beside_its_campaign_is_found_and_the_declaration_stays_as_it_was(tmp_path):
    content = {**SMOKE, "conditions": {"grpo": ["configs/conditions/paper/mine.yaml", "configs/rates/fast.yaml"]}}
    for file in ("one/campaigns/file.yaml", "one/conditions/mine.yaml", "conditions/rates/fast.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(yaml.safe_dump({**content, "baseline": "grpo"}))
    declared = read_declaration(tmp_path / "one" / "campaigns" / "file.yaml")
    assert declared.conditions["grpo"] == ("configs/conditions/paper/mine.yaml", "configs/rates/fast.yaml")
    assert declared == CampaignDeclaration.from_json({**declared.to_json(), "conditions": content["conditions"]})
    (spec, *_) = list_run_specs(declared, tmp_path)
    moved = ("configs/tiny.yaml", tmp_path / "one/conditions/mine.yaml", tmp_path / "conditions/rates/fast.yaml")
    assert build_fit_arguments(spec, declared, 1, Path("x"))[:3] == [f"--config={file}" for file in moved]
    (tmp_path / "conditions" / "rates" / "fast.yaml").unlink()
    with pytest.raises(ValueError, match=r"conditions\.grpo: there is no file configs/rates/fast\.yaml"):
        read_declaration(tmp_path / "one" / "campaigns" / "file.yaml")


@pytest.mark.parametrize("summary", ["area", {"level": 0.7}])
def test_another_summary_of_the_primary_metric_is_another_declaration(summary):
    declared = parse_declaration({**SMOKE, "summary": summary})
    assert CampaignDeclaration.from_json(declared.to_json()).summary == declared.summary
    assert declared.sha256 != parse_declaration(SMOKE).sha256 == parse_declaration({**SMOKE, "summary": "end"}).sha256


def test_questions_and_draws_by_seed_are_settings_of_every_run():
    declared = parse_declaration({**SMOKE, "held_out": {"questions": "by_seed", "draws": "by_seed"}})
    assert CampaignDeclaration.from_json(declared.to_json()).held_out == declared.held_out
    spec = list_run_specs(declared, Path("campaigns"))[-1]
    words = build_fit_arguments(spec, declared, 2, Path("settings.yaml"))
    assert {
        f"--data.init_args.generator_seed={derive_question_seed(1)}",
        "--model.validation_seed=null",
        "--seed_everything=1",
    } <= set(words)
    plain = parse_declaration({**SMOKE, "held_out": {}})
    assert plain.sha256 == parse_declaration(SMOKE).sha256 != declared.sha256


def test_a_budget_stands_in_the_place_of_steps_and_leaves_other_declarations_as_they_were():
    plain = {name: value for name, value in SMOKE.items() if name != "steps"}
    declared = parse_declaration({**plain, "budget": {"decoded_tokens": 1000, "evaluations": 3}})
    assert declared.budget is not None
    assert (declared.steps, declared.end, declared.budget.marks) == (None, 1000, [0, 334, 667, 1000])
    assert CampaignDeclaration.from_json(declared.to_json()).budget == declared.budget
    assert "steps" not in declared.to_json()
    assert declared.to_json()["budget"] == {"decoded_tokens": 1000, "backward_tokens": None, "evaluations": 3}
    both = parse_declaration({**plain, "budget": {"rollout_tokens": 1000}})
    assert both.budget is not None
    assert both.budget.marks == [0, 63, 125, 250, 500, 1000]
    assert "TokenBudget(rollout_tokens=1000, evaluations=[63, 125, 250, 500, 1000])" in list_end_arguments(both)[-1]
    assert CampaignDeclaration.from_json(both.to_json()).budget == both.budget
    assert "budget" not in parse_declaration(SMOKE).to_json()
    (spec, *_) = list_run_specs(declared, Path("campaigns"))
    assert build_fit_arguments(spec, declared, 2, Path("settings.yaml"))[-3:-1] == [
        "--trainer.max_steps=-1",
        "--trainer.callbacks+=TokenBudget(decoded_tokens=1000, evaluations=3)",
    ]
    assert not any("max_steps" in word for word in build_fit_arguments(spec, declared, 2, Path("x"), ends=False))


def test_conditions_whose_rate_nobody_tuned_say_so_where_some_are_tuned():
    plain = parse_declaration(SMOKE)
    assert (plain.label_condition("maxrl_sepa"), "rates_from" in plain.to_json()) == ("maxrl_sepa", False)
    tuned = parse_declaration({**SMOKE, "rates_from": {"grpo": "tiny_rates"}})
    labels = [tuned.label_condition(name) for name in ("grpo", "maxrl_sepa")]
    assert labels == ["grpo", "maxrl_sepa (rate not tuned)"]
    assert CampaignDeclaration.from_json(tuned.to_json()).rates_from == {"grpo": "tiny_rates"}
    with pytest.raises(ValueError, match="rates_from: there is no condition 'rloo'"):
        parse_declaration({**SMOKE, "rates_from": {"rloo": "tiny_rates"}})
