import pytest
import torch

from callbacks.turns.uncertain_turns import UncertainTurns
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit


def make_uncertain():
    """Mean entropies 0.5, 1.5, 1 and 0.25 of four turns, and 2 of a lone one; observations have entropy 9."""
    rollout = make_episodes([[0.0, 0.0, 0.0, 1.0], [0.0]])
    entropy = [[0.0, 1.0, 9.0, 3.0, 0.0, 9.0, 1.0, 1.0, 9.0, 0.5, 0.0, 9.0], [2.0, 2.0, *[9.0] * 10]]
    rollout.entropy = torch.tensor(entropy)
    rollout.advantages = torch.tensor([[2.0], [-1.0]]).expand(2, 12).where(rollout.mask, 0)
    return rollout


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.2, [0.0, 2.0, 0.0, 0.0]),
        (0.5, [0.0, 2.0, 2.0, 0.0]),
        (0.75, [2.0, 2.0, 2.0, 0.0]),
        (1.0, [2.0, 2.0, 2.0, 2.0]),
    ],
)
def test_the_turns_with_the_largest_mean_entropy_keep_their_credit(share, expected):
    rollout = make_uncertain()
    metrics = UncertainTurns(share).assign_checked(rollout)
    assert turn_credit(rollout) == [expected, [-1.0]]
    kept = sum(value > 0 for value in expected) + 1
    assert metrics["kept_turn_fraction"].item() == pytest.approx(kept / 5)


def test_on_one_turn_it_is_the_identity():
    ours, theirs = make_one_turn(), make_one_turn()
    UncertainTurns(share=0.1).assign(ours)
    assert is_equal_on_tokens(ours, theirs)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ValueError, match=r"share in \(0, 1\], got 0"):
        UncertainTurns(share=0.0)
