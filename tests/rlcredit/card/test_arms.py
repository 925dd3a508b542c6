"""What is declared for a condition that learns."""

import pytest

from rlcredit.campaign.resolution import resolved
from rlcredit.campaign.run_spec import RunSpec, arguments, overlay
from rlcredit.card.arms import Arm, _declared
from rlcredit.card.budget import QUICK


@pytest.mark.parametrize(("name", "prompts"), [("grpo_28_prompts", 28), ("grpo_odds", 4)])
def test_a_condition_keeps_what_it_says_of_its_batches(name, prompts, tmp_path):
    files = ("configs/tiny.yaml", f"configs/conditions/controls/{name}.yaml")
    declaration = _declared(Arm(name, files, 5e-4), QUICK, (0,), 1e-3, tmp_path)
    settings = tmp_path / "settings.yaml"
    settings.write_text(overlay(declaration.settings))
    leaves = resolved(arguments(RunSpec(name, 0, tmp_path), declaration, 1, settings)).leaves
    assert leaves["data"]["init_args"]["prompts_per_step"] == prompts
    assert leaves["data"]["init_args"]["validation_size"] == QUICK.questions
    assert leaves["model"]["optimizer"]["init_args"]["lr"] == 1e-3
