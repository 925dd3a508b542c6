"""Commands that ask a policy play episodes where the task has an environment."""

import json
import re
import sys

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.question_trial import run_try_command
from rlcredit.cli.sample import run_sample_command
from rlcredit.evaluation.evaluate_command import run_evaluate_command

TASK = """
data:
  class_path: Episodes
  init_args:
    environment: tests.rlcredit.episodes.counting.Counting(length=3)
    validation_size: 4
    train_size: 16
    turn_tokens: 8
"""
CONFIG = f"""
threads: 1
trainer: {{accelerator: cpu, max_steps: 2, val_check_interval: 2, callbacks: [RLOO]}}
model:
  policy: {{path: tiny, prompt: {{chat: false}}}}
  sampling: {{completions: 4, max_tokens: 64, temperature: 1.0}}
{TASK}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    (tmp_path / "run.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")


def test_a_trial_shows_turns_with_their_rewards_and_what_was_answered(capsys, tmp_path):
    assert run_try_command(["--config=run.yaml", "--questions=1", "--completions=2", "--html=page.html"]) == 0
    shown = capsys.readouterr().out
    first = shown.partition("[1]")[2].partition("[2]")[0]
    total = re.search(r"(?:right|wrong): reward (\S+) in 3 turns; \d+ tokens", first)
    assert total
    assert re.findall(r"^turn (\d): ", first, re.MULTILINE) == ["1", "2", "3"]
    rewards = re.findall(r"^  reward (\S+), entropy", first, re.MULTILINE)
    assert sum(map(float, rewards)) == pytest.approx(float(total[1]), abs=0.01)
    assert len(re.findall(r"^  \| say \d$", first, re.MULTILINE)) == 3
    assert "3.0 turns an episode" in shown
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count('"answer": "say ') == 6


def test_one_question_begins_an_episode_of_its_own_seed(capsys):
    assert run_sample_command(["--config=run.yaml", "--question=x", "--seed=5", "--max_tokens=20"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^\[1\] wrong: reward \S+ in 2 turns; \d+ tokens, cut there", shown, re.MULTILINE)


def test_an_evaluation_keeps_episodes_as_messages_and_goes_on_where_it_stopped(tmp_path):
    arguments = ["--tasks=task.yaml", "--model=tiny", "--model_args", "prompt.chat=false", "--completions=2", "--k=1"]
    arguments += ["--max_tokens=64", "--mlflow=none", "--batch_size=4"]
    assert run_evaluate_command([*arguments, "--out=whole"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "whole" / "answers.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["assistant", "user"] * 3
        rewards = [message["reward"] for message in row["messages"][::2]]
        assert row["reward"] == pytest.approx(sum(rewards))
        assert row["turns"] == 3
        assert [str(int(message["content"][4:])) for message in row["messages"][1::2]]
    batches = (tmp_path / "whole" / "batches.jsonl").read_text("utf-8").splitlines(keepends=True)
    assert len(batches) == 2
    for name in ("results.json", "results.md", "answers.jsonl"):
        (tmp_path / "whole" / name).unlink()
    (tmp_path / "whole" / "batches.jsonl").write_text(batches[0], encoding="utf-8")
    assert run_evaluate_command([*arguments, "--out=whole"]) == 0
    again = [json.loads(line) for line in (tmp_path / "whole" / "answers.jsonl").read_text("utf-8").splitlines()]
    assert again == rows


def test_explain_says_what_ends_turns_and_episodes_and_what_they_earn(capsys):
    run_lightning_command(["explain", "--config=run.yaml", "--show_prompt", "--data.init_args.max_turns=9"])
    shown = capsys.readouterr().out
    assert re.search(r"^episodes +Counting\(length=3\), ", shown, re.MULTILINE)
    assert "a turn is cut at 8 tokens and taken as it stands; an episode ends after 9 turns as it stands" in shown
    assert "warning: 9 turns of 8 tokens are 72 tokens without what is read" in shown
    assert re.search(r"\n  \| say \d\n  reward 0(\.\d+)?; the episode goes on", shown)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("Counting", "in this process"),
        ("SlowCounting", "in this process, slow: rows wait for each other, and all are awaited together"),
        ("LockedCounting", "in locked processes"),
    ],
)
def test_explain_says_where_an_environment_answers(capsys, name, place):
    environment = f"tests.rlcredit.episodes.counting.{name}"
    run_lightning_command(["explain", "--config=run.yaml", f"--data.init_args.environment={environment}"])
    assert re.search(rf"^episodes +{name}\(.*\), {place}$", capsys.readouterr().out, re.MULTILINE)
