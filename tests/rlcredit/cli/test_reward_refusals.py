"""What is no reward is refused in the same sentence by `explain` and by `fit`, before anything starts."""

import pytest

from tests.small_runs import ROOT, finish_command

RETURNED = {
    "one": "[1.0]",
    "more": "[1.0] * (len(completions) + 1)",
    "nothing": "None",
    "texts": "['1.0' for _ in completions]",
    "mapping": "{number: 1.0 for number, _ in enumerate(completions)}",
    "generator": "(1.0 for _ in completions)",
    "nested": "[[1.0] for _ in completions]",
    "complex": "[1j for _ in completions]",
    "column": "__import__('numpy').ones((len(completions), 1))",
}
ENDING = {
    "exit": "__import__('os')._exit(0)",
    "leave": "__import__('sys').exit(0)",
    "interrupt": "exec('raise KeyboardInterrupt')",
}
SMALL = [
    *("--config", "configs/tiny.yaml", "--data.init_args.train_size", "16", "--data.init_args.validation_size", "4"),
    *("--trainer.max_steps", "1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), {**RETURNED, **ENDING}.items(), ids=[*RETURNED, *ENDING])
def test_explain_and_fit_refuse_in_the_same_sentence(tmp_path, name, code):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "mine.py").write_text(f"def {name}(completions, **columns):\n    return {code}\n")
    said = []
    for command, options in (("explain", []), ("fit", ["--mlflow", "none"])):
        rewards = ["--data.init_args.rewards", f"mine.{name}"]
        status, out, err = finish_command(tmp_path, command, *SMALL, *rewards, *options)
        assert status == 2, out + err
        said.append([line for line in err.splitlines() if line.startswith("error: ")])
    assert said[0] == said[1]
    assert len(said[0]) == 1
    assert said[0][0].startswith(f"error: data.init_args.rewards: mine.{name}: ")
    assert not (tmp_path / "runs").exists()
