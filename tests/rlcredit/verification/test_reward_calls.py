"""Reward functions are called as TRL calls them, and what they return is read in one way everywhere."""

import asyncio
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from rlcredit.bridge import assign_credit
from rlcredit.verification.fault_attribution import AT_FAULT, judge_calls
from rlcredit.verification.reward_calls import RewardCall, check_rewards, read_rewards
from rlcredit.verification.user_judge import make_user_judge

CALL = RewardCall("4 + 3 = ?", ["7", "eight"], {"answer": "7", "level": 2, "prompt": "left out"}, "7", (5, 100))
FUNCTIONS = """
def needs_digits(completions, answer, **kwargs):
    return [float(int(text) == int(digits)) for text, digits in zip(completions, answer)]

def smallest(completions, **columns):
    values = [int(each.split()[-1]) for each in completions]
    return [float(each == min(values)) for each in values]

def one_too_few(completions, **columns):
    return [1.0] * max(1, len(completions) - 1)

def only_alone(completions, **columns):
    if len(completions) > 1:
        raise ValueError("too many")
    return [1.0]

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

    assert CALL.call_function(reward) == [0.0, 1.0]
    assert (seen["prompts"], seen["completions"]) == (["4 + 3 = ?"] * 2, ["7", "eight"])
    assert (seen["answer"], seen["level"]) == (["7", "7"], [2, 2])
    assert (seen["trainer_state"].global_step, seen["trainer_state"].max_steps) == (5, 100)
    assert {"prompt", "completion_ids"}.isdisjoint(seen)


def test_a_function_without_kwargs_is_given_what_it_names():
    def reward(completions, level, log_extra=None):
        return [value + len(text) for text, value in zip(completions, level)]

    assert CALL.call_function(reward) == [3.0, 7.0]


def test_what_is_not_given_is_named():
    def reward(completions, completion_ids, **kwargs):
        return [0.0]

    with pytest.raises(TypeError, match=r"it needs `completion_ids`, which is not given; the columns .* answer, level"):
        CALL.call_function(reward)


def test_a_verifier_in_place_of_a_reward_function_is_told_where_verifiers_are_named():
    with pytest.raises(TypeError, match=r"needs `completion`.* A verifier is named in data.init_args.verifier"):
        CALL.call_function(lambda completion, answer, metadata: True)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((0.5, 0.5), (True, 1.0), (np.bool_(True), 1.0), (-3, -3.0), (np.float32(2), 2.0), (np.int64(2), 2.0)),
        *((torch.tensor(1.5), 1.5), (torch.tensor(1.5, requires_grad=True), 1.5), (Decimal("0.5"), 0.5)),
        *((Fraction(1, 4), 0.25), (None, None)),
    ],
)
def test_a_reward_is_any_real_number_or_none(value, number):
    assert read_rewards([value, 0], 2) == [number, 0.0]


@pytest.mark.parametrize(
    "rewards", [(1, 0), np.array([1, 0]), torch.tensor([1.0, 0.0]), np.array([1, 0], dtype=object)]
)
def test_rewards_are_a_list_a_tuple_or_one_dimension_of_an_array(rewards):
    assert read_rewards(rewards, 2) == [1.0, 0.0]


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 1e300, -1e300, 10**400, np.float64(1e39), Decimal("1e99")]
)
def test_what_float32_cannot_hold_is_untold_and_said(value):
    reply = CALL.read_values([value, 1.0])
    assert math.isnan(reply.values[0])
    assert reply.values[1] == 1.0
    assert reply.fault == "it returned a reward that is not finite as float32 for the completion '7'"


class Endless(list):
    """A list that cannot be read."""

    def __len__(self):
        return 2

    def __iter__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


WRONG = {
    "too few": [1.0],
    "too many": [1.0, 0.0, 1.0],
    "none at all": [],
    "None": None,
    "a number": 1.0,
    "a bool": True,
    "a text": "10",
    "bytes": b"10",
    "texts": ["1.0", "0.0"],
    "an empty text": ["", 1.0],
    "a dict": {0: 1.0, 1: 0.0},
    "dicts": [{"reward": 1.0}, {"reward": 0.0}],
    "a set": {1.0, 0.0},
    "a generator": (each for each in (1.0, 0.0)),
    "a range's iterator": iter(range(2)),
    "a map": map(float, "10"),
    "the values of a dict": {0: 1.0, 1: 0.0}.values(),
    "nested lists": [[1.0], [0.0]],
    "a list in a list": [[1.0, 0.0]],
    "a column": np.ones((2, 1)),
    "a tensor of two dimensions": torch.ones(1, 2),
    "a tensor without dimensions": torch.tensor(1.0),
    "tensors of one dimension": [torch.ones(1), torch.ones(1)],
    "an array of texts": np.array(["1", "0"]),
    "complex numbers": [1j, 0j],
    "pairs": [(1.0, 0.5), (0.0, 0.5)],
    "objects": [object(), object()],
    "a class": list,
}
"""What is no rewards for two completions, by what it is."""


@pytest.mark.parametrize("returned", WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_with_what_it_is(returned):
    with pytest.raises(TypeError, match=r"it returned .*; expected a (list of 2, a number or None per|number or None)"):
        CALL.read_values(returned)


def test_what_cannot_even_be_shown_is_refused():
    with pytest.raises(RuntimeError, match="no"):
        CALL.read_values(Endless([1.0, 0.0]))


@pytest.mark.parametrize("returned", WRONG.values(), ids=WRONG)
def test_another_trainer_refuses_what_this_one_does(returned):
    with pytest.raises(ValueError, match=r"give returned .*; expected a (list of 2, a number|number or None)"):
        check_rewards(_make_giver(returned))(prompts=["?"] * 2, completions=["7", "eight"])


def _make_giver(returned):
    def give(completions, **_):
        completions.clear()
        return returned

    return give


def test_another_trainer_awaits_what_is_asynchronous():
    async def give(completions, **_):
        return torch.tensor([1.0, 2.0])

    assert asyncio.run(check_rewards(give)(prompts=["?"] * 2, completions=["7", "8"])) == [1.0, 2.0]


@pytest.mark.parametrize("rewards", [["1.0", "0.0"], [[1.0], [0.0]], {0: 1.0, 1: 0.0}, [1.0], [1j, 0.0]])
def test_a_bridge_refuses_rewards_that_are_none(rewards):
    with pytest.raises(ValueError, match=r"`rewards` holds .*; expected a"):
        assign_credit(
            "sepa_paper/c1_grpo",
            completion_ids=torch.ones(2, 2, dtype=torch.long),
            mask=torch.ones(2, 2),
            rewards=rewards,
            groups=["a", "a"],
        )


def reward(name, folder, call):
    """Return what a function gives completions, and who is at fault where it fails, without another process."""
    judge = make_user_judge(f"called_rewards.{name}", folder, math.inf, locked=False, trial=[call])
    (reply,) = judge_calls([call], lambda calls: [reply for _, reply in sorted(judge(calls))])
    return list(reply.values)


def test_a_completion_that_makes_a_function_raise_is_at_fault_alone(folder):
    assert reward("needs_digits", folder, CALL) == [1.0, AT_FAULT]
    unreadable = CALL._replace(columns={"answer": "seven"}, reference="seven")
    assert all(math.isnan(each) for each in reward("needs_digits", folder, unreadable))


def test_what_raises_for_one_completion_does_not_change_what_the_others_earn(folder):
    call = RewardCall("How much?", ["so 1", "so 2", "none", "so 3"], {}, "so 1")
    assert reward("smallest", folder, call) == [1.0, 0.0, AT_FAULT, 0.0]


@pytest.mark.parametrize("name", ["one_too_few", "only_alone"])
def test_a_function_at_fault_leaves_its_group_untold(folder, name):
    call = CALL._replace(completions=["a", "b", "c"])
    assert all(math.isnan(each) for each in reward(name, folder, call))


def test_a_function_sees_all_completions_of_a_prompt(folder):
    assert reward("Ranks", folder, CALL) == [0.0, 1.0]
