import re
import sys

import pytest

from rlcredit.cli.sample import run_sample_command
from rlcredit.cli.sampled_completions import sample_completions
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy
from rlcredit.tasks.example import build_conversation
from tests.rlcredit.cli.trained_run import CONFIG, made

QUESTION = "State the final answer to the following arithmetic problem: 4 + 3 - 2 ="


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])


def asked(capsys, *args):
    assert run_sample_command([*args, f"--question={QUESTION}"]) == 0
    return capsys.readouterr().out


def test_a_checkpoint_is_asked_as_its_run_asks(policy, tmp_path, capsys):
    run = made(policy, tmp_path / "run")
    shown = asked(capsys, "--ckpt_path=run", "--completions=2", "--seed=3", "--answer=5", "--html=page.html")
    assert shown.startswith("tiny, run/checkpoints/last.ckpt (step 4), temperature 0.8, at most 24 tokens\n\n[1] ")
    said = build_conversation(QUESTION, system="Add.")
    expected = sample_completions(
        policy, InProcessEngine(), [said], [0], Sampling(2, max_tokens=24, temperature=0.8), seed=3
    )[0]
    for number, completion in enumerate(expected, start=1):
        total = sum(completion.logprobs)
        found = rf"\[{number}\] (right|wrong|no answer found): .*reference 5; .*log-probability {total:.2f} "
        assert re.search(found, shown)
        assert f"\n{completion.text}\n" in shown
    assert "\x1b" not in shown
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "\\u003c|im_start|\\u003esystem\\nAdd.\\u003c|im_end|\\u003e" in page
    by_file = asked(capsys, f"--ckpt_path={run.last_checkpoint}", "--completions=2", "--seed=3", "--answer=5")
    assert by_file.partition("\n")[2] == shown.partition("\n")[2].replace("written to page.html\n", "")


def test_an_adapter_and_its_base_answer_as_a_checkpoint_does(policy, tmp_path, capsys):
    policy.save_adapter(tmp_path / "adapter")
    said = build_conversation(QUESTION, system="Be short.")
    arguments = ("--system=Be short.", "--max_tokens=16", "--temperature=1.0")
    shown = asked(capsys, "--adapter=adapter", *arguments)
    assert (
        sample_completions(policy, InProcessEngine(), [said], [0], Sampling(1, max_tokens=16, temperature=1.0), 0)[0][
            0
        ].text
        in shown
    )
    assert asked(capsys, "--ckpt_path=adapter", *arguments) == shown
    base = Policy()
    base.load()
    answer = sample_completions(base, InProcessEngine(), [said], [0], Sampling(1, max_tokens=16, temperature=1.0), 0)[
        0
    ][0].text
    assert answer in asked(capsys, "--model=tiny", *arguments)


def test_a_configuration_may_be_changed_on_the_command_line(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    shown = asked(capsys, "--config=c.yaml", "--model.sampling.max_tokens", "5", "--colour=always")
    assert shown.startswith("tiny, temperature 0.8, at most 5 tokens\nentropy in nats from ")
    assert "\x1b[48;5;" in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no policy is named. Give --ckpt_path, --adapter, --model or --config."),
        (("--ckpt_path=nowhere",), "--ckpt_path: there is no file or folder nowhere."),
        (("--ckpt_path=.",), "--ckpt_path: . holds no intact checkpoint and no adapter."),
        (("--adapter=nowhere",), "nowhere: not an adapter folder"),
        (("--model=nowhere/at_all",), "model.policy.path: 'nowhere/at_all' is not `tiny`, no folder"),
        (("--model=tiny", "--model.seed=3"), "--model.seed=3: no such option."),
        (("--model=tiny", "--thinking=on"), "the chat template of tiny knows no `enable_thinking`"),
        (("--model=tiny", "--raw", "--thinking=on"), "thinking is an option of chat templates"),
    ],
)
def test_a_refusal_is_one_line_and_status_2(capsys, args, message):
    assert run_sample_command([*args, "--question=4 + 3"]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_page_replaces_nothing_but_a_page(policy, tmp_path, capsys):
    run = made(policy, tmp_path / "run")
    run.record.touch()
    (run.path / "tokens").mkdir()
    (run.path / "tokens" / "step_000001.html").write_text("kept")
    for page, why in {
        "run/config.yaml": "a page is a file that ends in .html, got run/config.yaml.",
        "run/tokens/step_000001.html": "run/tokens/step_000001.html belongs to a run. Name another file.",
    }.items():
        with pytest.raises(SystemExit) as refused:
            run_sample_command(["--ckpt_path=run", "--question=4 + 3", f"--html={page}"])
        assert refused.value.code == 2
        assert why in capsys.readouterr().err
    assert (run.path / "tokens" / "step_000001.html").read_text() == "kept"


def test_a_checkpoint_without_its_configuration_asks_for_it(policy, tmp_path, capsys):
    run = made(policy, tmp_path / "run")
    run.config.unlink()
    assert run_sample_command(["--ckpt_path=run", "--question=4 + 3"]) == 2
    assert "there is no configuration beside it. Name the one of its run with --config." in capsys.readouterr().err
    (tmp_path / "c.yaml").write_text(CONFIG.replace("rank: 16", "rank: 4"))
    assert run_sample_command(["--ckpt_path=run", "--config=c.yaml", "--question=4 + 3"]) == 2
    assert "not of this model with LoRA rank 4: 42 weights differ" in capsys.readouterr().err
