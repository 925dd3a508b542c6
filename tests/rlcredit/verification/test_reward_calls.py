"""Reward functions are called as TRL calls them, whatever they name in their signature."""

import math

import numpy as np
import pytest
import torch

from rlcredit.verification.fault_attribution import AT_FAULT
from rlcredit.verification.reward_calls import (
    NOT_FINITE,
    RewardCall,
    give_rewards,
    load_reward_function,
    make_reward_judge,
    prepare_reward_trial,
)

CALL = RewardCall("4 + 3 = ?", ["7", "eight"], {"answer": "7", "level": 2, "prompt": "left out"}, "7", (5, 100))
FUNCTIONS = """
def needs_digits(completions, answer, **kwargs):
    return [float(int(text) == int(digits)) for text, digits in zip(completions, answer)]

def never(completions, **kwargs):
    raise KeyError("never")

async def later(completions, **kwargs):
    return [0.0 for _ in completions]

class Ranks:
    def __call__(self, completions, **kwargs):
        return [float(sum(len(other) < len(text) for other in completions)) for text in completions]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "called_rewards.py").write_text(FUNCTIONS)
    return str(tmp_path)


def test_everything_is_passed_by_keyword_and_once_for_each_completion():
    seen = {}

    def reward(prompts, completions, **kwargs):
        seen.update(kwargs, prompts=prompts, completions=completions)
        kwargs["log_extra"]("length", [1, 2])
        kwargs["log_metric"]("length", 1.5)
        return [0.0, 1.0]

    assert give_rewards(reward, CALL, CALL.completions) == [0.0, 1.0]
    assert (seen["prompts"], seen["completions"]) == (["4 + 3 = ?"] * 2, ["7", "eight"])
    assert (seen["answer"], seen["level"]) == (["7", "7"], [2, 2])
    assert (seen["trainer_state"].global_step, seen["trainer_state"].max_steps) == (5, 100)
    assert {"prompt", "completion_ids"}.isdisjoint(seen)


def test_a_function_without_kwargs_is_given_what_it_names():
    def reward(completions, level, log_extra=None):
        return [value + len(text) for text, value in zip(completions, level)]

    assert give_rewards(reward, CALL, CALL.completions) == [3.0, 7.0]


def test_what_is_not_given_is_named():
    def reward(completions, completion_ids, **kwargs):
        return [0.0]

    with pytest.raises(TypeError, match=r"it needs `completion_ids`, which is not given; the columns .* answer, level"):
        give_rewards(reward, CALL, CALL.completions)


@pytest.mark.parametrize("value", [0.5, True, -3, np.float32(2), torch.tensor(1.5), None])
def test_a_reward_is_any_number_or_none(value):
    assert give_rewards(lambda **_: [value, 0], CALL, CALL.completions) == [None if value is None else float(value), 0]


def test_an_array_is_a_list_and_what_is_not_finite_is_marked():
    given = give_rewards(lambda **_: np.array([math.nan, -math.inf]), CALL, CALL.completions)
    assert given == [NOT_FINITE, NOT_FINITE]


@pytest.mark.parametrize("returned", [None, 1.0, [1.0], "ab", ["a", "b"]])
def test_anything_but_a_list_of_rewards_is_refused(returned):
    with pytest.raises(TypeError, match="it returned"):
        give_rewards(lambda **_: returned, CALL, CALL.completions)


def test_a_completion_that_makes_a_function_raise_is_at_fault_alone(folder):
    reward = make_reward_judge(["called_rewards.needs_digits"], folder, CALL._replace(completions=["7"]))
    assert reward("7", 0, CALL) == [1.0, AT_FAULT]
    unreadable = CALL._replace(columns={"answer": "seven"}, reference="seven")
    assert all(math.isnan(each) for each in reward("seven", 0, unreadable) if each is not None)


def test_a_function_sees_all_completions_of_a_prompt(folder):
    reward = make_reward_judge(["called_rewards.Ranks"], folder, CALL)
    assert reward("7", 0, CALL) == [0.0, 1.0]


def test_a_trial_raises_what_the_function_raises(folder):
    with pytest.raises(KeyError, match="never"):
        prepare_reward_trial("called_rewards.never", folder, CALL)()


def test_an_asynchronous_function_is_refused(folder):
    with pytest.raises(TypeError, match="it is asynchronous"):
        load_reward_function("called_rewards.later", folder)
