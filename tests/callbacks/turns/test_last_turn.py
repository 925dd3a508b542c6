import torch

from callbacks.turns.last_turn import LastTurn
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit


def test_the_last_turn_alone_keeps_its_credit():
    rollout = make_episodes([[0.0, 0.0, 1.0], [0.0], [0.0, 1.0]])
    rollout.advantages = torch.tensor([[2.0], [-1.0], [3.0]]).expand(3, 9).where(rollout.mask, 0)
    metrics = LastTurn().assign_checked(rollout)
    assert turn_credit(rollout) == [[0.0, 0.0, 2.0], [-1.0], [0.0, 3.0]]
    assert metrics["kept_fraction"] == 0.5


def test_on_one_turn_it_is_the_identity():
    ours, theirs = make_one_turn(), make_one_turn()
    LastTurn().assign(ours)
    assert is_equal_on_tokens(ours, theirs)
