"""What is measured for the plan, and what is not measured twice."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rlcredit.campaign import step_timing
from rlcredit.campaign.campaign_command import run_campaign_command
from rlcredit.campaign.config_differences import list_differences
from rlcredit.campaign.resolved_condition import resolve_condition

FREE = "c1_grpo", "c8_maxrl_sepa", "frozen", "random_mask"
COSTLY = "monte_carlo_credit", "monte_carlo_phrases", "tepo", "measured", "oracle_few", "maxrl_sepa_semantic"
STACKS = (*FREE, *COSTLY)


def resolution(condition, *more):
    (overlay,) = Path("configs/conditions").glob(f"*/{condition}.yaml")
    return resolve_condition(["--config", "configs/tiny.yaml", "--config", str(overlay), *more])


@pytest.fixture(scope="module")
def resolutions():
    frozen = resolution("c1_grpo", "--model.optimizer.init_args.lr=0")
    return {name: frozen if name == "frozen" else resolution(name) for name in STACKS}


@pytest.fixture
def measured(monkeypatch):
    """Return the conditions measured, by stand-ins for short runs."""
    called = []

    def seconds(given, resolution, launcher, root):
        called.append(resolution.leaves["condition"])
        return {"start": 1.0, "step": float(len(called)), "validation": 1.0, "decoded": 1.0, "backward": 1.0}

    monkeypatch.setattr(step_timing, "measure_run_seconds", seconds)
    return called


def asked(resolutions, root, threads=1, **more):
    given = dict.fromkeys(resolutions, ())
    return step_timing.measure_conditions(
        given, resolutions, SimpleNamespace(label="Local", threads=threads), root, **more
    )


@pytest.mark.slow
def test_conditions_that_differ_in_credit_cost_alike(resolutions, measured, tmp_path):
    found = asked(resolutions, tmp_path)
    assert measured == ["c1_grpo", *COSTLY]
    assert list(found) == list(STACKS)
    assert [found[name] for name in FREE] == [found["c1_grpo"]] * len(FREE)


@pytest.mark.parametrize(
    "more",
    [
        "model.validation.completions=64",
        "model.micro_batch_tokens=99",
        "model.engine={class_path: InProcessEngine, init_args: {merge: true}}",
    ],
)
def test_what_a_run_does_besides_credit_costs(more, resolutions):
    assert resolution("c1_grpo", f"--{more}").cost_sha256 != resolutions["c1_grpo"].cost_sha256


def test_decoding_ahead_costs_another_time():
    served, ahead = (
        resolve_condition(["--config", "configs/tiny.yaml", "--config", f"configs/engines/{name}.yaml"])
        for name in ("vllm", "vllm_ahead")
    )
    assert ahead.cost_sha256 != served.cost_sha256
    differences = list_differences(served.leaves, ahead.leaves)
    assert "model.engine.init_args.ahead: declared 0, executed 1" in differences


def test_nothing_is_measured_twice(resolutions, measured, tmp_path):
    found = asked(resolutions, tmp_path)
    assert asked(dict(reversed(resolutions.items())), tmp_path) == found
    assert len(measured) == 1 + len(COSTLY)
    asked(resolutions, tmp_path, threads=2)
    assert len(measured) == 2 * (1 + len(COSTLY))


def test_what_is_unknown_and_not_to_be_measured_is_left_out(resolutions, measured, tmp_path):
    two = {name: resolutions[name] for name in ("c1_grpo", "monte_carlo_credit")}
    asked({"c1_grpo": two["c1_grpo"]}, tmp_path)
    assert list(asked(two, tmp_path, measure=False)) == ["c1_grpo"]
    assert measured == ["c1_grpo"]


def test_what_was_measured_before_a_failure_is_kept(resolutions, measured, monkeypatch, tmp_path):
    asked({"c1_grpo": resolutions["c1_grpo"]}, tmp_path)
    monkeypatch.undo()

    def begin(folder, words, more):
        (folder / "log.txt").write_text("no memory")
        return SimpleNamespace(poll=lambda: 1)

    launcher = SimpleNamespace(label="Local", threads=1, start_run=begin)
    both = {name: resolutions[name] for name in ("c1_grpo", "tepo")}
    with pytest.raises(ValueError, match="a short run of tepo failed: no memory"):
        step_timing.measure_conditions(dict.fromkeys(both, ()), both, launcher, tmp_path)
    assert list(asked(both, tmp_path, measure=False)) == ["c1_grpo"]


def test_conditions_evaluated_at_other_steps_are_refused_before_anything_is_measured(tmp_path, capsys):
    declaration = yaml.safe_load(Path("configs/campaigns/tiny_smoke.yaml").read_text())
    declaration["settings"] = {"checkpoint.every_n_train_steps": 5}
    for every, (name, overlay) in zip((5, 10), declaration["conditions"].items(), strict=True):
        (tmp_path / f"{name}.yaml").write_text(f"trainer: {{val_check_interval: {every}}}")
        declaration["conditions"][name] = [overlay, str(tmp_path / f"{name}.yaml")]
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump(declaration))
    assert run_campaign_command([str(tmp_path / "campaign.yaml"), "--plan", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "trainer.val_check_interval differs between conditions" in said.err
    assert "measuring" not in said.out
