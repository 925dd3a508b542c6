import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.adapter_critic import AdapterCritic
from callbacks.critics.oracle_teacher import OracleTeacher
from callbacks.dense.gae import GAE
from rlcredit.credit.stack import CreditStack
from tests.callbacks.rollouts import numbers, rollout_of_ids
from tests.conftest import KnownOracle, make_rollout


def share_right(place, length, samples):
    """Return how many continuations of a prefix shorter than the completion the oracle of these tests calls right."""
    right = [(5 * place + 3 * length + 7 * number) % 11 < 5 for number in range(samples)]
    return sum(right) / samples


def test_the_worked_example():
    rollout = rollout_of_ids([1.0, 0.0, 0.0], [[4, 5, 6], [4, 5, 6], [4, 5]])
    before = rollout.returns.clone()
    metrics = numbers(OracleTeacher(completions=2, samples=4).assign(rollout))
    # Before token t of a completion of three: (5 t + 9 + 7 m) mod 11 is 9 5 1 8, then 3 10 6 2, then 8 4 0 7; of two:
    # 6 2 9 5, then 0 7 3 10. Below five is right.
    told = torch.tensor([[0.25, 0.5, 0.5], before[1].tolist(), [0.25, 0.5, 0.0]])
    assert_close(rollout.returns, told)
    squares = [0.75**2, 0.5**2, 0.5**2, 0.25**2, 0.5**2]
    assert metrics == pytest.approx({"decoded_tokens": 0.0, "reward_noise": (sum(squares) / 5) ** 0.5})
    assert rollout.correct.tolist() == rollout.rewards.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(("completions", "asked"), [(1, [0]), (2, [0, 7]), (99, list(range(8)))])
def test_some_completions_are_asked_about_and_the_others_keep_their_returns(completions, asked):
    rollout = make_rollout()
    before = rollout.returns.clone()
    OracleTeacher(completions, samples=3).assign(rollout)
    for row, length in enumerate(rollout.mask.sum(-1).tolist()):
        told = [share_right(place, length, 3) for place in range(length)]
        expected = torch.tensor(told) if row in asked else before[row, :length]
        assert_close(rollout.returns[row, :length], expected)
        assert torch.equal(rollout.returns[row, length:], before[row, length:])


def test_it_logs_the_tokens_that_the_oracle_has_decoded():
    class Decoding(KnownOracle):
        def outcomes(self, rollout, rows, starts, samples):
            assert torch.equal(starts, rollout.mask[rows])
            self.decoded += samples * int(starts.sum())
            return super().outcomes(rollout, rows, starts, samples)

    rollout = make_rollout()
    rollout.oracle = Decoding(decoded=1000)
    metrics = numbers(OracleTeacher(completions=2, samples=3).assign(rollout))
    assert metrics["decoded_tokens"] == 3 * rollout.mask[[0, 7]].sum().item()


def test_asked_about_nothing_it_asks_nothing():
    rollout = make_rollout()
    rollout.oracle = None
    before = rollout.returns
    assert OracleTeacher(completions=0).assign(rollout) == {}
    assert rollout.returns is before


def test_a_critic_below_learns_what_was_measured():
    seen = []

    class Pupil(AdapterCritic):
        def learn(self, rollout, returns):
            seen.append(returns)
            return super().learn(rollout, returns)

    told = CreditStack([OracleTeacher(completions=99), Pupil(), GAE()]).assign(make_rollout()).returns
    assert torch.equal(seen[0], told)
    assert not torch.equal(told, make_rollout().returns)


@pytest.mark.parametrize("arguments", [{"completions": -1}, {"samples": 0}])
def test_a_teacher_that_measures_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match="OracleTeacher expects"):
        OracleTeacher(**arguments)
