"""Task files, an adapter that changes the embedded policy, and the command."""

import pytest

from rlcredit.evaluation.evaluate_command import run_evaluate_command

TASK = """
data:
  class_path: ReasoningGym
  init_args:
    name: chain_sum
    config: {{min_terms: {terms}, max_terms: {terms}, min_digits: 1, max_digits: 1}}
    train_size: 64
    validation_size: {size}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tasks(here):
    """Two task files of eight questions."""
    files = {"three": 3, "four": 4}
    for name, terms in files.items():
        (here / f"{name}.yaml").write_text(TASK.format(terms=terms, size=8))
    return [f"{name}.yaml" for name in files]


@pytest.fixture
def adapter(here, policy):
    """The adapter of the policy of all tests, in PEFT's format."""
    policy.save_adapter(here / "taught" / "adapter")
    return "taught/adapter"


@pytest.fixture
def evaluate(here, tasks, capsys):
    """Return exit status, output and errors of a small evaluation."""

    def run(*arguments, files=tasks, **flags):
        settings = {"completions": 4, "max_tokens": 40, "mlflow": "none", "device": "cpu", **flags}
        words = [word for name, value in settings.items() if value is not None for word in (f"--{name}", str(value))]
        try:
            status = run_evaluate_command(["--tasks", *files, *words, *arguments])
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return run
