import pytest
import torch

from callbacks.episode.rloo import RLOO
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.turns.turn_returns import TurnReturns, turn_return_advantages
from rlcredit.formulas.turn_returns import discounted_returns
from tests.callbacks.turns.episodes import (
    TRUE_GRADIENT,
    expected_gradient,
    is_equal_on_tokens,
    make_episodes,
    make_one_turn,
    turn_credit,
)

REWARDS = [[1.0, 0.0, 2.0], [0.0, 1.0], [4.0]]
"""Returns from each turn on: 3, 2, 2; 1, 1; 4. With half of what comes a turn later: 1.5, 1, 2; 0.5, 1; 4."""


@pytest.mark.parametrize(
    ("gamma", "baseline", "expected"),
    [
        (1.0, "whole", [[0.5, -0.5, -0.5], [-2.5, -2.5], [2.0]]),  # less 2.5, 3.5 and 2
        (1.0, "turn", [[0.5, 1.0, -0.5], [-2.5, -1.0], [2.0]]),  # turn 1 less 1 and 2; turn 2 has no other
        (0.5, "whole", [[-0.75, -1.25, -0.25], [-2.25, -1.75], [3.0]]),  # less 2.25, 2.75 and 1
        (0.0, "turn", [[-1.0, -1.0, 0.0], [-2.5, 1.0], [3.5]]),  # each turn its own reward
    ],
)
def test_golden_values_of_three_episodes(gamma, baseline, expected):
    rollout = make_episodes(REWARDS)
    metrics = TurnReturns(gamma, baseline).assign_checked(rollout)
    assert turn_credit(rollout) == expected
    assert metrics["turns"] == 2.0


@pytest.mark.parametrize("baseline", ["whole", "turn"])
@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_on_one_turn_it_is_rloo(gamma, baseline):
    ours, theirs = make_one_turn(), make_one_turn()
    TurnReturns(gamma, baseline).assign(ours)
    RLOO().assign(theirs)
    assert is_equal_on_tokens(ours, theirs)


def test_where_only_the_last_turn_is_rewarded_it_is_rloo():
    ours, theirs = (make_episodes([[0.0, 0.0, 0.7], [0.1], [0.0, 1.0], [0.0, 0.0]]) for _ in range(2))
    TurnReturns().assign(ours)
    RLOO().assign(theirs)
    assert is_equal_on_tokens(ours, theirs)


@pytest.mark.parametrize("baseline", ["whole", "turn"])
@pytest.mark.parametrize("group_size", [3, 4, 5])
def test_both_baselines_are_unbiased_where_the_policy_decides_when_to_stop(baseline, group_size):
    def credit_turns(table, size):
        return turn_return_advantages(discounted_returns(table, 1.0), size, baseline)

    assert expected_gradient(credit_turns, group_size) == pytest.approx(TRUE_GRADIENT, abs=1e-12)


def test_an_episode_without_a_verdict_counts_for_nobody():
    rollout = make_episodes([*REWARDS, [9.0, 9.0]])
    rollout.judged = torch.tensor([True, True, True, False])
    TurnReturns().assign_checked(rollout)
    assert turn_credit(rollout) == [[0.5, -0.5, -0.5], [-2.5, -2.5], [2.0], [0.0, 0.0]]


def test_a_penalty_on_the_reward_is_one_of_the_last_turn():
    rollout = make_episodes([[1.0, 0.0], [1.0]])
    SoftOverlong(max_tokens=4, cache=4).assign(rollout)  # four tokens lose 0.5, two lose 0.25
    TurnReturns().assign_checked(rollout)
    assert turn_credit(rollout) == [[-0.25, -1.25], [0.25]]  # returns 0.5, -0.5 and 0.75, less 0.75 and 0.5


def test_a_single_episode_has_nothing_to_be_compared_with():
    rollout = make_episodes([[1.0, 2.0]])
    TurnReturns().assign_checked(rollout)
    assert turn_credit(rollout) == [[0.0, 0.0]]
    assert "gives no credit to groups of 1" in TurnReturns().notice(1.0, 1)


@pytest.mark.parametrize("arguments", [{"gamma": 1.1}, {"baseline": "group"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="TurnReturns expects"):
        TurnReturns(**arguments)
