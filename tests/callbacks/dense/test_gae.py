import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.gae import GAE
from callbacks.episode.rloo import RLOO
from tests.callbacks.rollouts import THREE_AND_TWO, numbers, valued_rollout
from tests.callbacks.turns.episodes import make_episodes, turn_credit
from tests.conftest import make_rollout


def three_and_two():
    """A right completion of three tokens and a wrong one of two; the last value is padding."""
    return valued_rollout([1.0, 0.0], [[0.5, 0.75, 0.25], [0.5, 0.25, 9.0]], THREE_AND_TWO)


@pytest.mark.parametrize(
    ("lam", "expected"),
    [
        (0.0, [[0.25, -0.5, 0.75], [-0.25, -0.25, 0.0]]),
        (0.5, [[0.1875, -0.125, 0.75], [-0.375, -0.25, 0.0]]),
        (1.0, [[0.5, 0.25, 0.75], [-0.5, -0.25, 0.0]]),
    ],
)
def test_credit_of_three_tokens_and_of_two(lam, expected):
    rollout = three_and_two()
    GAE(lam).assign(rollout)
    assert_close(rollout.advantages, torch.tensor(expected))


def test_lambda_grows_with_the_length():
    rollout = three_and_two()
    metrics = numbers(GAE(lam=0.8, alpha=2.0).assign(rollout))
    # 1 - 1/6 for three tokens: -0.5 + 5/6 x 0.75 = 0.125, then 0.25 + 5/6 x 0.125. For two 1 - 1/4 is less than 0.8.
    assert_close(rollout.advantages, torch.tensor([[0.3541667, 0.125, 0.75], [-0.45, -0.25, 0.0]]), atol=1e-6, rtol=0)
    assert metrics["lambda_mean"] == pytest.approx((5 / 6 + 0.8) / 2)
    # Means 0.4097222 and -0.35: squared deviations 0.1999421 of three tokens and 0.02 of two.
    assert metrics["deviation_within"] == pytest.approx(((0.1999421 + 0.02) / 5) ** 0.5)


def test_a_critic_of_half_the_weight_replaces_half_of_three_quarters():
    rollout = three_and_two()
    rollout.advantages, rollout.critic_weight = torch.full((2, 3), 8.0), 0.5
    metrics = GAE(lam=0.0, share=0.75).assign(rollout)
    expected = 0.375 * torch.tensor([[0.25, -0.5, 0.75], [-0.25, -0.25, 0.0]]) + 0.625 * 8.0
    assert_close(rollout.advantages, expected)
    assert metrics["weight"].item() == pytest.approx(0.375)


@pytest.mark.parametrize("judged", [[True] * 8, [True, True, False, True, False, True, True, True]])
def test_without_a_critic_it_is_the_leave_one_out_baseline(judged):
    rewards = torch.tensor([1.0, 0.25, 0.0, 1.0, 0.0, 0.5, 0.0, 0.75])
    by_gae, by_rloo = make_rollout(rewards.tolist()), make_rollout(rewards.tolist())
    for rollout, operator in ((by_gae, GAE(lam=1.0)), (by_rloo, RLOO())):
        rollout.judged = torch.tensor(judged)
        operator.assign(rollout)
    assert_close(by_gae.advantages[by_gae.mask], by_rloo.advantages[by_gae.mask], atol=1e-6, rtol=0)


@pytest.mark.parametrize("arguments", [{"lam": 1.1}, {"lam": -0.1}, {"alpha": -1.0}, {"share": 1.1}])
def test_what_is_no_share_is_refused(arguments):
    with pytest.raises(ValueError, match="GAE expects"):
        GAE(**arguments)


@pytest.mark.parametrize(
    ("lam", "expected"),
    [(0.0, [-0.25, 0.75, -0.5]), (0.5, [0.125, 0.75, -0.5]), (1.0, [0.5, 0.75, -0.5])],
)
def test_at_turns_values_count_before_their_first_tokens_only(lam, expected):
    rollout = make_episodes([[0.0, 1.0], [0.0]])
    rollout.values = torch.tensor([[0.5, 9.0, 9.0, 0.25, 9.0, 9.0], [0.5, 9.0, 9.0, 9.0, 9.0, 9.0]])
    GAE(lam, cuts="turn").assign_checked(rollout)
    assert turn_credit(rollout) == [expected[:2], expected[2:]]


def test_one_turn_is_worth_its_reward_less_the_value_before_it():
    rollout = three_and_two()
    GAE(lam=0.5, cuts="turn").assign(rollout)
    assert rollout.advantages[rollout.mask].tolist() == [0.5, 0.5, 0.5, -0.5, -0.5]
    at_tokens = three_and_two()
    GAE(lam=1.0).assign(at_tokens)
    assert torch.equal(rollout.advantages[:, 0], at_tokens.advantages[:, 0])


def test_other_cuts_are_refused():
    with pytest.raises(ValueError, match="GAE expects cuts to be one of token, turn"):
        GAE(cuts="sentence")  # pyright: ignore[reportArgumentType]
