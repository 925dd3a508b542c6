import pytest
import torch

from callbacks.turns.random_turns import RandomTurns
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit


def chosen_turns(step=0, **arguments):
    """The turns that keep their credit, of 200 episodes of five turns and 200 of two."""
    rollout = make_episodes([[1.0] * 5, [1.0] * 2] * 200, group_size=4)
    rollout.step = step
    rollout.advantages = rollout.mask.float()
    RandomTurns(**arguments).assign_checked(rollout)
    return turn_credit(rollout)


def test_as_many_turns_of_every_episode_keep_their_credit_at_other_places():
    credit = chosen_turns(share=0.4)
    assert [sum(row) for row in credit] == [2.0, 1.0] * 200
    assert len(set(map(tuple, credit[::2]))) == 10  # all pairs of five
    counts = torch.tensor(credit[::2]).sum(0)
    assert counts.min() > 60  # 80 on average
    assert credit == chosen_turns(share=0.4)


def test_draws_depend_on_step_and_seed():
    assert len({str(chosen_turns(step, seed=seed)) for step in (0, 1) for seed in (0, 1)}) == 4


def test_on_one_turn_it_is_the_identity():
    ours, theirs = make_one_turn(), make_one_turn()
    RandomTurns(share=0.1).assign(ours)
    assert is_equal_on_tokens(ours, theirs)


def test_a_share_above_one_is_refused():
    with pytest.raises(ValueError, match=r"got 1\.5"):
        RandomTurns(share=1.5)
