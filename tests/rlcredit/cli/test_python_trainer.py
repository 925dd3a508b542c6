import json

from callbacks import GRPO
from rlcredit import PolicyModule, ReasoningGym, Sampling, make_trainer, read_run


def test_a_trainer_of_a_script_records_a_run_and_prints_nothing_but_results(tmp_path, capfd):
    task = ReasoningGym(
        "chain_sum", {"min_terms": 3, "max_terms": 3}, prompts_per_step=2, validation_size=2, train_size=8
    )
    short = Sampling(completions=2, max_tokens=8)
    module = PolicyModule(sampling=short, validation=short, pass_k=2)
    make_trainer([GRPO()], tmp_path, max_steps=2, accelerator="cpu").fit(module, task)
    printed, errors = capfd.readouterr()
    assert [line[:23] for line in printed.splitlines()] == ["held out after    2 ste"]
    assert errors == ""
    run = read_run(tmp_path)
    assert list(run.metrics.index) == [0, 1, 2]
    assert list(run.held_out["step"].unique()) == [2]
    rows = json.loads((tmp_path / "completions" / "step_000000.json").read_text())
    assert {"prompt", "reference", "completion", "verdict", "reward"} <= rows[0].keys()
