"""What is declared for a condition that learns."""

import pytest

from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.run_spec import RunSpec, build_fit_arguments, render_settings
from rlcredit.cards.budget import QUICK_BUDGET
from rlcredit.cards.card_batch import read_update_settings
from rlcredit.cards.paired_runs import PairedRuns, TrainingCondition

GRPO = "configs/conditions/sepa_paper/c1_grpo.yaml"


@pytest.mark.parametrize(("name", "prompts"), [("grpo_28_prompts", 28), ("grpo_odds", 4)])
def test_a_condition_keeps_what_it_says_of_its_batches(name, prompts, tmp_path):
    files = ("configs/tiny.yaml", f"configs/conditions/controls/{name}.yaml")
    declaration = PairedRuns(QUICK_BUDGET, tmp_path).declare_runs(TrainingCondition(name, files, 5e-4), (0,), 1e-3)
    settings = tmp_path / "settings.yaml"
    settings.write_text(render_settings(declaration.settings))
    leaves = resolve_condition(build_fit_arguments(RunSpec(name, 0, tmp_path), declaration, 1, settings)).leaves
    assert leaves["data"]["init_args"]["prompts_per_step"] == prompts
    assert leaves["data"]["init_args"]["validation_size"] == QUICK_BUDGET.questions
    assert leaves["model"]["optimizer"]["init_args"]["lr"] == 1e-3


def test_a_condition_that_uses_a_rollout_again_takes_more_updates_for_as_many_rollouts(tmp_path):
    files = ("configs/tiny.yaml", "configs/conditions/losses/grpo_reused.yaml")
    updates = read_update_settings(files)
    assert updates == {"model.updates_per_rollout": 4, "model.minibatches": 2}
    assert read_update_settings(("configs/tiny.yaml", GRPO)) == {"model.updates_per_rollout": 1, "model.minibatches": 1}
    arm = TrainingCondition("grpo_reused", files, 5e-4, updates["model.updates_per_rollout"])
    declaration = PairedRuns(QUICK_BUDGET, tmp_path).declare_runs(arm, (0,), 5e-4)
    assert declaration.steps == 4 * QUICK_BUDGET.steps
    assert declaration.settings["trainer.val_check_interval"] == 40


def test_arms_that_are_not_evaluated_alike_are_refused_before_they_run(tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("model: {validation: {completions: 8}}\ntrainer: {callbacks: [GRPO]}\n")
    arms = [
        TrainingCondition(name, ("configs/tiny.yaml", file), 5e-4)
        for name, file in (("other", str(other)), ("GRPO", GRPO))
    ]
    with pytest.raises(ValueError, match=r"alike: settings\.model\.validation\.completions: other 8, GRPO 2"):
        PairedRuns(QUICK_BUDGET, tmp_path / "arms").refuse_unlike_evaluation(*arms)
    PairedRuns(QUICK_BUDGET, tmp_path / "arms").refuse_unlike_evaluation(arms[1], arms[1])
    assert [path.name for path in (tmp_path / "arms").iterdir()] == ["quick.yaml"]


def test_runs_of_code_that_has_changed_are_others(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_factor.py").write_text("FACTOR = 1\n")
    condition = tmp_path / "mine.yaml"
    condition.write_text("trainer: {callbacks: [GRPO, own_factor.Scaled]}\n")
    arm = TrainingCondition("mine", ("configs/tiny.yaml", str(condition)), 5e-4)

    def name():
        return PairedRuns(QUICK_BUDGET, tmp_path / "arms").declare_runs(arm, (0,), 5e-4).name

    before = name()
    assert name() == before
    (tmp_path / "own_factor.py").write_text("FACTOR = -1\n")
    assert name() != before
