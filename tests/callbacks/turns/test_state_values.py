import pytest

from callbacks.episode.grpo import GRPO
from callbacks.turns.state_values import StateValues
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit


def test_golden_values_where_every_state_is_met_again():
    rollout = make_episodes([[0.0, 1.0], [0.0, 0.0, 0.0], [1.0]], [[7, 8], [7, 8, 7], [7]])
    StateValues(gamma=0.5).assign_checked(rollout)
    # V(7) is the mean of 0.5, 0, 0 and 1, V(8) of 1 and 0: to get from 7 to 8 is worth 0.5 x 0.5 - 0.375.
    assert turn_credit(rollout) == [[-0.125, 0.5], [-0.125, 0.1875 - 0.5, -0.375], [0.625]]


def test_turns_at_states_that_are_met_once_share_the_credit_of_the_turn_before_them():
    rollout = make_episodes([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]], [[1, 2, 3], [1, 4, 3]])
    metrics = StateValues(gamma=0.5).assign_checked(rollout)
    # V(1) is the mean of 1.5 and 0, V(3) of 2 and 0: two turns from 1 to 3 are worth 1 + 0.25 x 1 - 0.75.
    assert turn_credit(rollout) == [[0.5, 0.5, 1.0], [-0.5, -0.5, -1.0]]
    assert metrics["shared_fraction"].item() == pytest.approx(4 / 6)


def test_without_discount_the_credit_of_an_episode_adds_up_to_its_reward_less_the_first_value():
    rewards = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0], [0.0, 0.0, 1.0]]
    rollout = make_episodes(rewards, [[1, 2, 3, 2], [1, 3], [1, 5, 2]])
    StateValues().assign_checked(rollout)
    assert [sum(row) for row in turn_credit(rollout)] == pytest.approx([2 - 4 / 3, 1 - 4 / 3, 1 - 4 / 3], abs=1e-6)


def test_on_one_turn_and_where_only_the_prompt_is_shared_it_is_grpo():
    ours, theirs = make_one_turn(), make_one_turn()
    StateValues(gamma=0.5).assign(ours)
    GRPO().assign(theirs)
    assert is_equal_on_tokens(ours, theirs)
    ours, theirs = (make_episodes([[0.0, 1.0], [0.0, 0.0], [1.0]], [[1, 2], [1, 3], [1]]) for _ in range(2))
    StateValues().assign(ours)
    GRPO().assign(theirs)
    assert is_equal_on_tokens(ours, theirs)


def test_a_gamma_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"gamma in \(0, 1\], got 0"):
        StateValues(gamma=0.0)
