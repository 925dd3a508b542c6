import pytest

from callbacks.episode.grpo import GRPO
from callbacks.turns.mt_grpo import MTGRPO, mt_grpo_advantages
from tests.callbacks.turns.episodes import (
    TRUE_GRADIENT,
    expected_gradient,
    is_equal_on_tokens,
    make_episodes,
    make_one_turn,
    turn_credit,
)

REWARDS = [[1.0, 0.5, 1.0], [0.0, 0.5], [0.0]]
"""Outcomes 1, 0.5 and 0, mean 0.5; turn 0 has 1 and 0 from those who go on, turn 1 has 0.5 from one."""


def test_golden_values_of_three_episodes():
    rollout = make_episodes(REWARDS)
    MTGRPO(normalize_std=False).assign_checked(rollout)
    assert turn_credit(rollout) == [[1.0, 0.5, 0.5], [-0.5, 0.0], [-0.5]]


def test_golden_values_divided_by_deviations():
    rollout = make_episodes(REWARDS)
    MTGRPO(weight=2.0).assign_checked(rollout)
    # Outcomes deviate by 0.5, so that they become 1, 0 and -1; turn 0 by sqrt(1/2), so that it becomes +-0.707107.
    expected = [[1 + 2 * 0.707107, 1.0, 1.0], [-2 * 0.707107, 0.0], [-1.0]]
    for ours, theirs in zip(turn_credit(rollout), expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("normalize_std", [False, True])
def test_on_one_turn_and_without_weight_it_is_grpo(normalize_std):
    ours, theirs = make_one_turn(), make_one_turn()
    MTGRPO(normalize_std=normalize_std).assign(ours)
    GRPO(normalize_std).assign(theirs)
    assert is_equal_on_tokens(ours, theirs)
    without, outcomes = make_episodes(REWARDS), make_episodes([[1.0], [0.5], [0.0]])
    MTGRPO(weight=0.0, normalize_std=normalize_std).assign(without)
    GRPO(normalize_std).assign(outcomes)
    assert turn_credit(without) == [[outcomes.advantages[row, 0].item()] * (3 - row) for row in range(3)]


@pytest.mark.parametrize("group_size", [3, 4, 5])
def test_its_gradient_points_the_other_way_where_going_on_earns(group_size):
    def credit_turns(table, size):
        return mt_grpo_advantages(table, size, weight=1.0, normalize_std=False)

    first, second = expected_gradient(credit_turns, group_size)
    # To go on earns a certain 1, which is all taken away. What is left are outcomes, 0.25 after going on at turn 0 and
    # 0.9 without, 0.3 and 0.2 at turn 1, and the shrinkage of a mean with the episode in it.
    assert first == pytest.approx((group_size - 1) / group_size * 0.24 * (0.25 - 0.9), abs=1e-12)
    assert second == pytest.approx((group_size - 1) / group_size * 0.4 * 0.25 * (0.3 - 0.2), abs=1e-12)
    assert first < 0 < TRUE_GRADIENT[0]


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="weight >= 0, got -1"):
        MTGRPO(weight=-1.0)
