import numpy as np
import pytest

from rlcredit.tasks import ReasoningGym, Records
from rlcredit.verification import user_functions
from rlcredit.verification.user_verifier import UserVerifier, VerifierFunction, read_user_judgement
from rlcredit.verification.verifiers import Verdict, make_verdict

VERIFIERS = """
import os, time
from pathlib import Path

def judge(completion, answer, metadata):
    if completion == "hang":
        time.sleep(60)
    if completion == "die":
        os._exit(1)
    if completion == "raise":
        raise KeyError(completion)
    if completion == "text":
        return "yes"
    return completion.endswith(answer) and completion.count(" ") <= metadata.get("words", 9)

class Partly:
    def __init__(self):
        self.bonus = float(Path(__file__).with_name("bonus.txt").read_text())
    def __call__(self, completion, answer, metadata):
        return self.bonus if completion == "half" else float(answer in completion)

def raises(completion, answer, metadata):
    return completion.split("=")[1] == answer

def says(completion, answer, metadata):
    print("a word")
    return None

def two(completion, answer):
    return True

def rewards(completions, **columns):
    return [1.0 for _ in completions]

def late(completion, answer, metadata):
    import sqlite3
    return open(__file__).read() is None

def percent(completion, answer, metadata):
    return 70

def slow(completion, answer, metadata):
    time.sleep(1.2)
    return True

def stuck(completion, answer, metadata):
    while True:
        pass

def dies(completion, answer, metadata):
    os._exit(3)

number = 5
"""
RIGHT, WRONG, UNJUDGED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED


def judge(verifier, calls):
    return list(map(make_verdict, verifier.score_completions(calls)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_verifiers.py").write_text(VERIFIERS)
    (tmp_path / "bonus.txt").write_text("0.5")
    (tmp_path / "broken.py").write_text("import nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(user_functions, "LOCKED_SECONDS", 20.0)


def test_a_function_judges_and_what_hangs_dies_or_raises_is_wrong(folder, monkeypatch):
    verifier = UserVerifier("my_verifiers.judge")
    said = ["it is 5", "it is 6", "a b c 5", "raise", "text"]
    metadata = {"words": 2}
    assert judge(verifier, [(text, "5", metadata) for text in said]) == [RIGHT, WRONG, WRONG, WRONG, WRONG]
    assert verifier.function.pool is not None
    verifier.function.pool.timeout = 1.0
    assert judge(verifier, [("die", "5", metadata), ("it is 5", "5", metadata)]) == [WRONG, RIGHT]


def test_an_object_of_a_class_judges_and_right_begins_at_one(folder, patient):
    verifier = UserVerifier("my_verifiers.Partly")
    assert judge(verifier, [("it is 5", "5", {}), ("half", "5", {})]) == [RIGHT, WRONG]


def test_a_verifier_at_fault_leaves_its_case_unjudged(folder, patient):
    verifier = UserVerifier("my_verifiers.raises")
    verifier.start(("a=b", {}))
    assert judge(verifier, [("c", "b", {}), ("c", "b=b", {})]) == [UNJUDGED, WRONG]


def test_a_fault_is_told_again_once_it_is_tenfold(folder, patient, capsys):
    verifier = UserVerifier("my_verifiers.raises")
    verifier.start(("a=b", {}))
    faulty = [(f"c{number}", "b", {}) for number in range(12)]
    assert judge(verifier, faulty) == [UNJUDGED] * 12
    first, again = capsys.readouterr().err.splitlines()
    assert "it raised IndexError" in first
    assert again.endswith("Such completions are not judged. This has happened 10 times.")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere_at_all.judge", "it cannot be used: there is no module `nowhere_at_all`, in the working dir"),
        ("my_verifiers.nothing", "the module my_verifiers has no `nothing`, only .*(judge|raises)"),
        ("my_verifiers.number", "it is not a function, and its instances cannot be called"),
        ("my_verifiers.two", "it cannot be called as .completion.*: too many positional arguments"),
        ("my_verifiers.rewards", "too many positional arguments. A reward function is named in data.init_args.rewards"),
        ("broken.judge", r"No module named 'nowhere' \(broken.py, line 1\)"),
        ("my_verifiers.raises", r"completion '5' and the answer '5', it raised IndexError: .*\(my_verifiers.py, line"),
        ("my_verifiers.says", "it returned None; expected True, False or a number from 0 to 1"),
        ("my_verifiers.percent", "it returned 70; expected"),
        ("my_verifiers.dies", "it has ended its process"),
        ("my_verifiers.late", r"it raised .*Error: .* \(in a locked process, which can open and import nothing"),
    ],
)
def test_what_cannot_judge_is_refused_with_its_reason(folder, patient, path, message):
    with pytest.raises(ValueError, match=rf"data.init_args.verifier: {path}: .*{message}"):
        UserVerifier(path).start(("5", {}))


@pytest.mark.parametrize("name", ["slow", "stuck"])
def test_what_is_too_slow_is_refused(folder, monkeypatch, name):
    monkeypatch.setattr(user_functions, "START_SECONDS", 20.0 if name == "slow" else 1.0)
    with pytest.raises(ValueError, match=rf"data.init_args.verifier: my_verifiers.{name}: .*it took longer than 1 s"):
        UserVerifier(VerifierFunction(f"my_verifiers.{name}", seconds=1.0)).start(("5", {}))


def test_an_unlocked_verifier_may_read_and_import(folder):
    verifier = UserVerifier(VerifierFunction("my_verifiers.late", locked=False))
    assert judge(verifier, [("it is 5", "5", {})]) == [WRONG]


@pytest.mark.parametrize("path", ["judge", "my_verifiers:judge", "", "os.system", "builtins.eval", "my_verifiers.py"])
def test_what_is_no_path_of_a_verifier_is_refused_at_once(path):
    with pytest.raises(
        ValueError, match=r"data.init_args.verifier: .*(is not a dotted path|is part " r"of Python|is a Python file)"
    ):
        UserVerifier(path)


def test_results_are_bools_and_shares():
    assert [read_user_judgement(each) for each in (True, False, 1, 0.25, np.bool_(True), np.float32(0.5))] == [
        1,
        0,
        1,
        0.25,
        1,
        0.5,
    ]
    for strange in ("yes", None, 2, -0.1, float("nan"), [1]):
        with pytest.raises(TypeError, match="expected True, False or a number from 0 to 1"):
            read_user_judgement(strange)


def test_a_task_judges_by_it_whatever_its_own_verifier_is(folder, patient):
    (folder / "train.jsonl").write_text("".join(f'{{"prompt": "{i}+1?", "answer": {i + 1}}}\n' for i in range(50)))
    tasks = [
        Records("train.jsonl", verifier="my_verifiers.judge", prompts_per_step=2),
        ReasoningGym("chain_sum", train_size=8, validation_size=2, prompts_per_step=2, verifier="my_verifiers.judge"),
    ]
    for task in tasks:
        task.setup()
        example = task.train_set[0]
        assert task.judge([f"so {example.answer}", "no"], [example] * 2) == [RIGHT, WRONG]


def test_a_task_refuses_it_before_anything_else_starts(folder, patient):
    task = ReasoningGym("chain_sum", train_size=8, validation_size=2, prompts_per_step=2, verifier="my_verifiers.two")
    with pytest.raises(ValueError, match=r"data.init_args.verifier: my_verifiers.two: it cannot be used"):
        task.setup()
