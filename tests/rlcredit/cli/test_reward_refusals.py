"""What is no reward is refused in the same sentence by `explain` and by `fit`, before anything starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
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


def ask_rlcredit(folder, command, *options):
    module = [sys.executable, "-m", "rlcredit", command, *SMALL, *options]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(module, cwd=folder, env=settings, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), {**RETURNED, **ENDING}.items(), ids=[*RETURNED, *ENDING])
def test_explain_and_fit_refuse_in_the_same_sentence(tmp_path, name, code):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "mine.py").write_text(f"def {name}(completions, **columns):\n    return {code}\n")
    said = []
    for command, options in (("explain", []), ("fit", ["--mlflow", "none"])):
        done = ask_rlcredit(tmp_path, command, "--data.init_args.rewards", f"mine.{name}", *options)
        assert done.returncode == 2, done.stdout + done.stderr
        said.append([line for line in done.stderr.splitlines() if line.startswith("error: ")])
    assert said[0] == said[1]
    assert len(said[0]) == 1
    assert said[0][0].startswith(f"error: data.init_args.rewards: mine.{name}: ")
    assert not (tmp_path / "runs").exists()
