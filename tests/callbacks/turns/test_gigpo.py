import pytest

from callbacks.episode.grpo import GRPO
from callbacks.turns.gigpo import GiGPO
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit

REWARDS, STATES = [[0.0, 1.0], [0.0, 0.0, 0.0], [1.0]], [[7, 8], [7, 8, 7], [7]]
"""With gamma 0.5 state 7 is followed by 0.5, 0, 0 and 1, mean 0.375, and state 8 by 1 and 0. The mean reward is 3/6
over six turns, and 2/3 over three episodes."""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [[0.5 + 0.125, 0.5 + 0.5], [-0.5 - 0.375, -0.5 - 0.5, -0.5 - 0.375], [0.5 + 0.625]]),
        ({"weight": 0.0}, [[0.5, 0.5], [-0.5, -0.5, -0.5], [0.5]]),
        (
            {"mean_over": "episodes", "weight": 2.0},
            [[1 / 3 + 0.25, 1 / 3 + 1], [-2 / 3 - 0.75, -2 / 3 - 1, -2 / 3 - 0.75], [1 / 3 + 1.25]],
        ),
        (  # Deviations: sqrt(1.5 / 5) of rewards, sqrt(0.6875 / 3) after state 7, sqrt(1 / 2) after state 8.
            {"normalize_std": True},
            [
                [0.912871 + 0.261116, 0.912871 + 0.707107],
                [-0.912871 - 0.783349, -0.912871 - 0.707107, -0.912871 - 0.783349],
                [0.912871 + 1.305582],
            ],
        ),
    ],
)
def test_golden_values_of_three_episodes(arguments, expected):
    rollout = make_episodes(REWARDS, STATES)
    metrics = GiGPO(gamma=0.5, **arguments).assign_checked(rollout)
    for ours, theirs in zip(turn_credit(rollout), expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert metrics["shared_fraction"] == 1.0


def test_a_state_that_is_met_once_has_no_credit_of_a_step():
    rollout = make_episodes(REWARDS, [[7, 1], [7, 2, 3], [7]])
    metrics = GiGPO(gamma=0.5).assign_checked(rollout)
    assert turn_credit(rollout) == [[0.5, 0.5], [-1.0, -0.5, -0.5], [1.0]]  # state 7: 0.5, 0 and 1
    assert metrics["shared_fraction"] == 0.5


def test_states_of_other_groups_are_other_states():
    two_groups = make_episodes([[1.0], [0.0], [0.0], [0.0]], [[7], [7], [7], [7]], group_size=2)
    GiGPO().assign_checked(two_groups)
    assert turn_credit(two_groups) == [[1.0], [-1.0], [0.0], [0.0]]


@pytest.mark.parametrize("normalize_std", [False, True])
@pytest.mark.parametrize("mean_over", ["turns", "episodes"])
def test_on_one_turn_it_is_grpo_times_one_and_the_weight(mean_over, normalize_std):
    ours, theirs = make_one_turn(), make_one_turn()
    GRPO(normalize_std).assign(theirs)
    for weight in (0.0, 1.0):
        GiGPO(0.95, weight, mean_over, normalize_std).assign(ours)
        theirs.advantages = theirs.advantages * (1 + weight)
        assert is_equal_on_tokens(ours, theirs)


@pytest.mark.parametrize("arguments", [{"gamma": -0.1}, {"weight": -1.0}, {"mean_over": "rows"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="GiGPO expects"):
        GiGPO(**arguments)
