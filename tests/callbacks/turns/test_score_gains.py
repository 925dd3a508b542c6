import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.rloo import RLOO
from callbacks.turns.score_gains import ScoreGains, score_gains
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn, turn_credit


def test_golden_values_of_a_score_that_falls_and_rises():
    rollout = make_episodes([[0.5, 0.25, 1.0], [0.25]])
    ScoreGains(gamma=0.5).assign_checked(rollout)
    # Gains 0.5, 0 and 0.5. The last goes to turns 2, 1 and 0 as 4 : 2 : 1. The other episode has turn 0 alone.
    expected = [0.5 + 0.5 / 7 - 0.25, 0.5 * 2 / 7, 0.5 * 4 / 7]
    assert turn_credit(rollout)[0] == pytest.approx(expected)
    assert turn_credit(rollout)[1] == pytest.approx([0.25 - 0.5 - 0.5 / 7])


@pytest.mark.parametrize(("gamma", "expected"), [(0.0, [[0.25, 0.0, 0.75]]), (1.0, [[0.25 + 0.25, 0.25, 0.25]])])
def test_a_gain_stays_where_it_was_made_or_is_shared_evenly(gamma, expected):
    assert score_gains(torch.tensor([[0.25, 0.0, 1.0]]), gamma).tolist() == expected


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_the_credit_of_an_episode_adds_up_to_its_best_score(gamma):
    scores = torch.randn(50, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[::2, 4:] = torch.nan
    assert_close(score_gains(scores, gamma).nansum(-1), scores.nan_to_num(-9.0).amax(-1))


def test_on_one_turn_it_is_rloo():
    ours, theirs = make_one_turn(), make_one_turn()
    ScoreGains().assign(ours)
    RLOO().assign(theirs)
    assert is_equal_on_tokens(ours, theirs)


def test_a_gamma_above_one_is_refused():
    with pytest.raises(ValueError, match=r"got 1\.5"):
        ScoreGains(gamma=1.5)
