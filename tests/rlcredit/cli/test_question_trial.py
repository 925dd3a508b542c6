import re
import sys

import pytest

from rlcredit.cli.question_trial import run_try_command, summarise_completions
from rlcredit.cli.sampled_completions import Completion
from rlcredit.verification.verifiers import Verdict
from tests.rlcredit.cli.trained_run import CONFIG, made


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")


@pytest.mark.slow
def test_questions_of_the_training_set_are_answered_and_judged(tmp_path, capsys):
    assert run_try_command(["--config=c.yaml", "--questions=3", "--completions=2", "--html=page.html"]) == 0
    shown = capsys.readouterr().out
    assert "first prompt, as the model reads it\n  | <|im_start|>system\n  | Add.<|im_end|>\n" in shown
    questions = re.findall(r"^State the final answer to the following arithmetic problem: (.*) =$", shown, re.MULTILINE)
    assert len(set(questions)) == 3
    references = re.findall(r"^\[\d\] .*?reference (-?\d+);", shown, re.MULTILINE)
    assert [int(reference) for reference in references[::2]] == [eval(question) for question in questions]
    verdicts = re.findall(r"^\[\d\] (right|wrong|no answer found): (?:answer (-?\d+), )?reference (-?\d+)", shown, re.M)
    assert len(verdicts) == 6
    assert all((verdict == "right") == (answer == reference) for verdict, answer, reference in verdicts)
    right = sum(verdict == "right" for verdict, _, _ in verdicts)
    assert f"6 completions of 3 questions: {right / 6:.0%} right, " in shown
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count('"verdict": "') == 6


def test_a_run_is_tried_with_what_it_has_learnt(policy, tmp_path, capsys):
    made(policy, tmp_path / "run")
    assert run_try_command(["--ckpt_path=run", "--questions=1", "--completions=1"]) == 0
    assert "run/checkpoints/last.ckpt (step 4), temperature 0.8" in capsys.readouterr().out


def completion(verdict, answer="1", truncated=False):
    return Completion(["x"], [0.0], [0.0], truncated, answer, "1", verdict)


def test_counts_say_what_to_do_where_no_update_could_come_of_it():
    right, wrong = completion(Verdict.RIGHT), completion(Verdict.WRONG)
    assert list(summarise_completions([right, wrong, wrong, wrong], 2)) == [
        "4 completions of 2 questions: 25% right, 0% truncated, 0% without an answer, 0% not judged"
    ]
    silent, unjudged = completion(Verdict.NO_ANSWER, None, truncated=True), completion(Verdict.UNJUDGED, None)
    counts, *remedies = summarise_completions([wrong, silent, unjudged, wrong], 1)
    assert counts.endswith(": 0% right, 25% truncated, 25% without an answer, 25% not judged")
    assert [remedy.partition(".")[0] for remedy in remedies] == [
        "Nothing is solved: without a right completion there is no credit",
        "Many completions are cut off",
        "Many completions state no answer",
    ]
    assert [*summarise_completions([right, right], 1)][1].startswith("All is solved")


def test_an_option_that_is_nearly_one_of_its_own_is_named(capsys):
    with pytest.raises(SystemExit) as stop:
        run_try_command(["--config=c.yaml", "--question", "2", "--data.init_args.seed=1", "--condition=x"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: --question: no such option. Did you mean `--questions`?\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--model=tiny",), "questions come from a configuration."),
    ],
)
def test_a_refusal_is_one_line_and_status_2(capsys, args, message):
    assert run_try_command(list(args)) == 2
    assert message in capsys.readouterr().err
