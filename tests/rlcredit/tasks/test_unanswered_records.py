"""Data without answers: functions of one's own judge alone, and read every column as it is."""

import json

import pytest

from rlcredit.tasks import Records
from rlcredit.tasks.example import NO_REFERENCE
from rlcredit.verification.verifiers import Verdict

FUNCTIONS = """
def count_lines(prompts, completions, kwargs, **columns):
    wanted = [each[0]["lines"] for each in kwargs]
    assert "answer" not in columns
    return [float(len(text.splitlines()) == number) for text, number in zip(completions, wanted)]

def name_calls(prompts, completions, ground_truth, **columns):
    return [float(next(iter(each[0])) in text) for text, each in zip(completions, ground_truth)]

def judge_lines(completion, answer, metadata):
    assert answer == ""
    return len(completion.splitlines()) == metadata["kwargs"][0]["lines"]

def judge_answer(completion, answer, metadata):
    return completion == (answer or "?")
"""
POEMS = [{"prompt": f"Write {n} lines.", "kwargs": [{"lines": n, "language": None}]} for n in range(1, 5)]
CALLS = [{"prompt": f"Add {n}.", "ground_truth": [{"add": {"a": [n]}}]} for n in range(1, 5)]
HALF = [{"prompt": f"{n}?", "answer": n if n % 2 else None} for n in range(1, 5)]


@pytest.fixture
def read(tmp_path, monkeypatch):
    (tmp_path / "unanswered.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)

    def task(rows, **arguments):
        (tmp_path / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        made = Records("q.jsonl", train_split=None, validation="q.jsonl", **arguments)
        made.setup("validate")
        return made

    return task


@pytest.mark.parametrize(
    ("rows", "judge", "completions", "right"),
    [
        (POEMS, {"rewards": "unanswered.count_lines"}, ["a", "a\nb"], [False, True]),
        (POEMS, {"verifier": "unanswered.judge_lines"}, ["a", "a\nb"], [False, True]),
        (CALLS, {"rewards": "unanswered.name_calls"}, ["sum(2)", "add(2)"], [False, True]),
        (HALF, {"verifier": "unanswered.judge_answer"}, ["?", "2"], [True, False]),
    ],
)
def test_functions_of_ones_own_need_no_answer_and_read_columns_as_they_are(
    read, capsys, rows, judge, completions, right
):
    task = read(rows, **judge)
    second = task.held_out_set[1]
    assert (second.answer, second.reference, second.metadata) == (
        "",
        NO_REFERENCE,
        {k: rows[1][k] for k in rows[1] if k != "prompt"},
    )
    verdicts = task.score(completions, [second] * 2).verdicts
    assert [verdict is Verdict.RIGHT for verdict in verdicts] == right
    bare = 2 if rows is HALF else 4
    assert (
        f"q.jsonl: {bare} of 4 records have no answer as a text; data.init_args.{next(iter(judge))} needs none."
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("judge", [{}, {"rewards": "verifier"}, {"rewards": ["unanswered.count_lines", "verifier"]}])
def test_where_answers_are_compared_they_are_demanded(read, judge):
    with pytest.raises(ValueError, match=r"q.jsonl, line 1: no column is called `answer`"):
        read(POEMS, **judge)
    with pytest.raises(ValueError, match=r"q.jsonl, line 1: column `ground_truth` lists an object with the fields"):
        read(CALLS, **judge)
    with pytest.raises(ValueError, match="2 of 4 records have no answer"):
        read(HALF, **judge)


def test_a_verifier_of_ones_own_under_rewards_needs_no_answer(read):
    task = read(POEMS, rewards="verifier", verifier="unanswered.judge_lines")
    assert task.score(["a\nb"], task.held_out_set[1:2]).rewards.tolist() == [1.0]


def test_a_column_of_answers_that_is_named_must_be_there_and_records_may_be_left_out(read):
    with pytest.raises(ValueError, match=r"data.init_args.answer: q.jsonl, line 1, has no column `solution`"):
        read(POEMS, rewards="unanswered.count_lines", answer="solution")
    task = read(HALF, verifier="unanswered.judge_answer", skip_unanswered=True)
    assert [example.answer for example in task.held_out_set] == ["1", "3"]
