import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.prompt_preview import preview_first_prompt
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PromptError, PromptFormat
from rlcredit.verification.answer_formats import MARKED_FORMATS, find_final_answer, state_answer

TINY = Path(__file__).parents[3] / "configs" / "tiny.yaml"


def test_the_prompt_is_shown_with_its_special_tokens_and_answers_with_their_verdicts(task):
    policy = Policy()
    lines = list(preview_first_prompt(policy, task))
    assert policy.lm is None, "no weights are needed"
    example = task.train_set[0]
    ids = policy.prompt.encode_conversations(policy_tokenizer(), [task.build_conversation(example)])[0]
    assert lines[:5] == [
        f"first prompt, {len(ids)} tokens, special ones: <|im_end|>, <|im_start|>",
        "  | <|im_start|>user",
        f"  | {example.question}<|im_end|>",
        "  | <|im_start|>assistant",
        "  | ",
    ]
    judged = lines[lines.index("how answers to it are judged") + 1 :]
    right = [line.split(None, 1)[1] for line in judged if line.startswith("  right ")]
    assert right == state_answer(example.answer, task.answer_formats)
    assert next(line for line in judged if "I do not know." in line).startswith("  no answer found ")
    assert len(judged) == len(MARKED_FORMATS) + 2


def policy_tokenizer():
    from rlcredit.policy.model_loading import load_tokenizer

    return load_tokenizer(Policy().location)


def test_what_cannot_be_written_is_said_by_the_name_that_was_given(task):
    with pytest.raises(PromptError, match="the chat template of tiny knows no"):
        list(preview_first_prompt(Policy(prompt=PromptFormat(thinking=True)), task))


@pytest.mark.parametrize("name", MARKED_FORMATS)
def test_a_statement_is_read_as_the_answer_it_states(name):
    for answer in ("7", r"\frac{1}{2}", "-19"):
        [text] = state_answer(answer, (name,))
        assert find_final_answer(text, (name,)) == answer


def test_explain_shows_it_when_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    run_lightning_command(["explain", "--show_prompt", f"--config={TINY}", "--data.init_args.train_size=16"])
    shown = capsys.readouterr().out
    assert "first prompt, 26 tokens, special ones: <|im_end|>, <|im_start|>\n  | <|im_start|>user\n" in shown
    assert shown.count("  right ") == len(MARKED_FORMATS)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.csv").write_text("question,answer\n1 + 1,2\n1 + 2,3\n")
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    data = ["--data=Records", "--data.init_args.path=sums.csv"]
    with pytest.raises(SystemExit) as ended:
        run_lightning_command(["explain", "--show_prompt", f"--config={TINY}", *data, "--data.init_args.answer=total"])
    assert ended.value.code == 2
    assert "has no column `total`" in capsys.readouterr().err
    held_out = ["--data.init_args.train_split=null", "--data.init_args.validation_split=train"]
    run_lightning_command(["explain", "--show_prompt", f"--config={TINY}", *data, *held_out])
    assert "  | 1 + 1<|im_end|>\n" in capsys.readouterr().out
