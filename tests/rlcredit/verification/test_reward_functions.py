"""Reward functions run in locked processes; no completion gains from making one fail."""

import math

import pytest

from rlcredit.verification import user_verifier
from rlcredit.verification.fault_attribution import AT_FAULT
from rlcredit.verification.reward_calls import UNTOLD, RewardCall
from rlcredit.verification.reward_functions import (
    RewardFunction,
    RewardSum,
    read_reward_functions,
    replace_faults,
    weighted_sums,
)
from rlcredit.verification.verifiers import Verdict

REWARDS = """
import os, time

def near_five(completions, **kwargs):
    return [-abs(5 - len(text)) for text in completions]

def solves(prompts, completions, solution, **kwargs):
    for text in completions:
        if text == "hang":
            time.sleep(60)
        if text == "die":
            os._exit(1)
        if text == "raise":
            raise ValueError(text)
    return [1.0 if text == right else 0.3 if text.isdigit() else None for text, right in zip(completions, solution)]

def odd(completions, **kwargs):
    return [float("nan") if text == "odd" else 1.0 for text in completions]

def chat(completions, **kwargs):
    return [float(len(completion[0]["content"])) for completion in completions]

def files(completions, **kwargs):
    return [float(len(open("/etc/hostname").read())) for _ in completions]
"""
RIGHT, WRONG, UNJUDGED, NO_ANSWER = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED, Verdict.NO_ANSWER


def call(*completions, solution="42"):
    return RewardCall("6 * 7 = ?", list(completions), {"solution": solution}, solution)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(user_verifier, "SECONDS", 20.0)
    return tmp_path


def rewards_of(scores):
    return [None if math.isnan(each) else round(each, 5) for each in scores.rewards.tolist()]


def test_weights_add_up_and_none_does_not_apply(folder):
    summed = RewardSum(
        read_reward_functions(["my_rewards.solves", {"function": "my_rewards.near_five", "weight": 0.1}])
    )
    scores = summed.score([call("42", "7", "words")], [])
    # 1 - 0.3; 0.3 - 0.4; only the length, which is that of five letters.
    assert rewards_of(scores) == [0.7, -0.1, 0.0]
    assert scores.verdicts == [WRONG, WRONG, WRONG]
    assert scores.parts["near_five"].tolist() == [-3.0, -4.0, 0.0]
    assert scores.parts["solves"].isnan().tolist() == [False, False, True]


def test_where_no_function_applies_nobody_can_tell(folder):
    scores = RewardSum(read_reward_functions("my_rewards.solves")).score([call("42", "words")], [])
    assert rewards_of(scores) == [1.0, None]
    assert scores.verdicts == [RIGHT, UNJUDGED]


def test_what_breaks_a_function_gets_the_worst_of_its_prompt(folder):
    summed = RewardSum(read_reward_functions("my_rewards.solves"))
    summed.start(call())
    assert summed.worker_pool is not None
    summed.worker_pool.timeout = 1.0
    calls = [call("42", "raise"), call("42", "die", "7"), call("hang", "7"), call("42", "9")]
    scores = summed.score(calls, [])
    # 0.3 is the worst of the others in the second and third prompt, and nobody gets more than nothing for a fault.
    assert rewards_of(scores) == [1.0, 0.0, 1.0, 0.0, 0.3, 0.0, 0.3, 1.0, 0.3]


def test_a_function_runs_in_a_locked_process(folder):
    with pytest.raises(ValueError, match=r"data.rewards: my_rewards.files: .* in a locked process, which can open"):
        RewardSum(read_reward_functions("my_rewards.files")).start(call())


def test_what_is_not_finite_is_unjudged_and_named_with_its_completion(folder, capsys):
    summed = RewardSum(read_reward_functions(["my_rewards.odd", "my_rewards.near_five"]))
    assert rewards_of(summed.score([call("odd", "fives")], [])) == [None, 1.0]
    told = capsys.readouterr()
    assert "my_rewards.odd returned NaN or an infinity for the completion 'odd' to the prompt '6 * 7" in (
        told.out + told.err
    )


def test_the_verifier_decides_what_is_right_where_it_takes_part(folder):
    functions = read_reward_functions(["verifier", RewardFunction("my_rewards.near_five", 0.1)])
    judged = [(RIGHT, 1.0), (WRONG, 0.3), (NO_ANSWER, 0.0), (UNJUDGED, None)]
    scores = RewardSum(functions).score([call("42", "7", "words", "fives")], judged)
    assert rewards_of(scores) == [0.7, -0.1, 0.0, None]
    assert scores.verdicts == [RIGHT, WRONG, NO_ANSWER, UNJUDGED]


def test_right_begins_where_the_task_says_so(folder):
    for solved_at, verdicts in ((1.0, [WRONG, WRONG]), (0.0, [RIGHT, WRONG]), (-4.0, [RIGHT, RIGHT])):
        summed = RewardSum(read_reward_functions("my_rewards.near_five"), solved_at)
        assert summed.score([call("fives", "4")], []).verdicts == verdicts


def test_weights_that_add_up_to_one_in_decimals_reach_one():
    functions = [RewardFunction("verifier", weight) for weight in (0.7, 0.2, 0.1)]
    assert 0.7 + 0.2 + 0.1 < 1
    assert RewardSum(functions)._judge_sum(0.7 + 0.2 + 0.1) is RIGHT


def test_a_chat_function_on_texts_is_told_what_to_do(folder):
    with pytest.raises(ValueError, match=r"data.rewards: my_rewards.chat: .* It expects messages, .* set data.system"):
        RewardSum(read_reward_functions("my_rewards.chat")).start(call())
    said = [{"role": "assistant", "content": "four"}]
    chat = RewardCall([{"role": "user", "content": "?"}], [said], {}, said)
    assert rewards_of(RewardSum(read_reward_functions("my_rewards.chat")).score([chat], [])) == [4.0]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], "is empty"),
        (["mine.a", {"function": "mine.a", "weight": 2}], "mine.a is named twice"),
        ([{"name": "mine.a"}], "expected the name of a function, or {function: ..., weight: ...}"),
        ([{"function": "mine.a", "weight": math.inf}], "the weight of mine.a is inf"),
        ("os.getcwd", "os.getcwd is part of Python and not a reward"),
        ("format", "'format' is not a dotted path"),
    ],
)
def test_what_names_no_reward_function_is_refused(written, message):
    with pytest.raises(ValueError, match=f"data.rewards.*{message}"):
        RewardSum(read_reward_functions(written))


def test_faults_and_sums():
    assert replace_faults([AT_FAULT, AT_FAULT], 1.0) == [0.0, 0.0]
    assert replace_faults([AT_FAULT, 2.0, None, UNTOLD], 1.0)[:3] == [0.0, 2.0, None]
    assert weighted_sums([[None], [None]], [1.0, 1.0]) == [None]


def test_names_in_metrics_are_short_where_they_differ():
    paths = ["one.length", "two.length", "one.format", "verifier"]
    summed = RewardSum([RewardFunction(path) for path in paths], unsafe=True)
    assert summed.names == ["one.length", "two.length", "format", "verifier"]
