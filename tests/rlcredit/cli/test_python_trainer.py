import json

import pytest

from callbacks import GRPO, GTPO
from rlcredit import PolicyModule, ReasoningGym, Sampling, make_trainer, read_run


def test_a_trainer_of_a_script_records_a_run_and_prints_nothing_but_results(tmp_path, capfd):
    task = ReasoningGym(
        "chain_sum", {"min_terms": 3, "max_terms": 3}, prompts_per_step=2, validation_size=2, train_size=8
    )
    short = Sampling(completions=2, max_tokens=8)
    module = PolicyModule(sampling=short, validation=short, pass_k=2)
    trainer = make_trainer([GRPO(), GTPO(beta=0.5)], tmp_path, max_steps=2, accelerator="cpu")
    trainer.validate(module, task, verbose=False)
    trainer.fit(module, task)
    printed, errors = capfd.readouterr()
    assert [line[:17] for line in printed.splitlines()] == [
        *["held out after   ", "held out after   "],
        "held out: pass@1 ",
    ]
    assert errors == ""
    run = read_run(tmp_path)
    assert list(run.metrics.index) == [0, 1, 2]
    assert list(run.held_out["step"].unique()) == [0, 2]
    assert run.stack == ["GRPO(normalize_std=False)", "GTPO(beta=0.5)"]
    assert run.parameters["prompts_per_step"] == "2"
    assert "GTPO" in (tmp_path / "heatmap" / "step_000001.html").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "completions" / "step_000000.json").read_text())
    assert {"prompt", "reference", "completion", "verdict", "reward"} <= rows[0].keys()


def test_gains_of_a_script_that_did_not_evaluate_first_name_the_step_they_begin_at(tmp_path, capfd):
    task = ReasoningGym("chain_sum", {"min_terms": 3, "max_terms": 3}, prompts_per_step=2, validation_size=2)
    short = Sampling(completions=2, max_tokens=8)
    trainer = make_trainer([GRPO()], tmp_path, max_steps=2, val_check_interval=1, accelerator="cpu")
    trainer.fit(PolicyModule(sampling=short, validation=short, pass_k=2), task)
    assert capfd.readouterr().out.splitlines()[-1].startswith("held out from step 1: pass@1 ")


@pytest.mark.parametrize(("callbacks", "name"), [(["GRPO"], "GRPO"), ([GRPO(), GTPO], "GTPO"), ("GRPO", "GRPO")])
def test_what_is_no_callback_is_refused_with_what_to_write(callbacks, name, tmp_path):
    with pytest.raises(TypeError, match=rf"no callback. Write an instance, such as {name}\(\)\."):
        make_trainer(callbacks, tmp_path, max_steps=2)
