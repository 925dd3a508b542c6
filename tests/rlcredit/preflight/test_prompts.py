import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat
from rlcredit.preflight.prompts import refuse_unreadable_prompts
from rlcredit.tasks import Records
from rlcredit.training.module import PolicyModule

TINY = Path(__file__).parents[3] / "configs" / "tiny.yaml"


def questions(folder, longest):
    lines = [f'{{"prompt": "{n} + 1", "answer": {n + 1}}}' for n in range(40)]
    path = folder / "questions.jsonl"
    path.write_text("\n".join([*lines, f'{{"prompt": "{"1" * longest}", "answer": 1}}']), encoding="utf-8")
    task = Records(str(path), prompts_per_step=2)
    task.setup()
    return task


def module(prompt=None, max_tokens=100):
    drawn = Sampling(2, max_tokens=max_tokens)
    return PolicyModule(Policy(prompt=prompt), drawn, Sampling(4, max_tokens=8))


def test_the_longest_question_is_tried(tmp_path):
    refuse_unreadable_prompts(module(), questions(tmp_path, 20))
    with pytest.raises(PromptError, match=r"a prompt has 1,\d\d\d tokens, and tiny reads 1,024"):
        refuse_unreadable_prompts(module(), questions(tmp_path, 1100))


def test_all_that_is_too_long_is_counted_and_a_limit_offered(tmp_path):
    path = tmp_path / "q.jsonl"
    asked = [*("1" * 950 for _ in range(2)), *(f"{n} + 1" for n in range(40)), "9" * 960, "\u00e9" * 600]
    path.write_text(
        "".join(f'{{"prompt": "{text} {n}", "answer": 1}}\n' for n, text in enumerate(asked)), encoding="utf-8"
    )
    task = Records(str(path), prompts_per_step=2)
    task.setup()
    with pytest.raises(PromptError, match="Too long are 4 of 44 prompts") as refused:
        refuse_unreadable_prompts(module(), task)
    assert f"{path}, line 44: " in str(refused.value)
    assert "data.init_args.max_question_characters: 602 to leave out 4 questions" in str(refused.value)
    shorter = Records(str(path), prompts_per_step=2, max_question_characters=602)
    shorter.setup()
    assert len(shorter.train_set) + len(shorter.held_out_set) == 40
    refuse_unreadable_prompts(module(), shorter)


def test_a_shorter_question_with_more_tokens_is_found_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("rlcredit.preflight.prompts.TRIED_QUESTIONS", 1)
    path = tmp_path / "q.jsonl"
    asked = [*(f"{n} + 1" for n in range(40)), "1" * 800, "\u00e9" * 600]
    path.write_text("".join(f'{{"prompt": "{text}", "answer": 1}}\n' for text in asked), encoding="utf-8")
    task = Records(str(path), prompts_per_step=2)
    task.setup()
    with pytest.raises(PromptError, match=r"line 42: .*Too long are 1 of 42"):
        refuse_unreadable_prompts(module(), task)


def test_completions_beyond_the_context_are_refused(tmp_path):
    task = questions(tmp_path, 200)
    refuse_unreadable_prompts(module(PromptFormat(chat=False), 824), task)
    with pytest.raises(PromptError, match="may have 1,025 tokens, and tiny reads 1,024"):
        refuse_unreadable_prompts(module(PromptFormat(chat=False), 825), task)


def test_a_run_whose_prompts_cannot_be_written_ends_before_it_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    with pytest.raises(SystemExit) as ended:
        run_lightning_command(
            ["fit", f"--config={TINY}", "--model.policy.prompt.thinking=false", "--data.init_args.train_size=16"]
        )
    assert ended.value.code == 2
    assert "model.policy.prompt.thinking is false, but the chat template of tiny knows no" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
