import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.forced_answer import ForcedAnswer
from tests.callbacks.rollouts import numbers, rollout_of_ids
from tests.callbacks.turns.episodes import make_episodes
from tests.rlcredit.training.sampled_rollouts import read_answer, sample_rollout

PIECES = [["Two", ". ", "Three", ". ", "Four"], ["Two", " and", " three"]]


def make_example():
    """Two completions, of three sentences and of one; a prefix before token k has the value exp(-k / 50)."""
    rollout = rollout_of_ids([1.0, 0.0], [[5, 10, 15, 20, 25], [50, 60, 70]])
    rollout.tokens = PIECES
    return rollout


def told(*ids):
    return [math.exp(-number / 50) for number in ids]


CUT = {
    "sentence": [told(5, 5, 15, 15, 25), [*told(50, 50, 50), 0.0, 0.0]],
    "token": [told(5, 10, 15, 20, 25), [*told(50, 60, 70), 0.0, 0.0]],
    "phrase": [told(5, 10, 10, 20, 20), [*told(50, 50, 70), 0.0, 0.0]],
}
"""Values of the example by cuts; planning tokens are the second and third, and the last of the short one."""


@pytest.mark.parametrize("cuts", CUT)
def test_values_are_carried_from_one_start_to_the_next(cuts):
    rollout, expected = make_example(), torch.tensor(CUT[cuts])
    rollout.plan_mask = torch.tensor([[False, True, True, False, False], [False, False, True, False, False]])
    metrics = numbers(ForcedAnswer(cuts=cuts).assign(rollout))
    assert_close(rollout.values, expected)
    assert metrics["prefixes"] == {"sentence": 2.0, "token": 4.0, "phrase": 2.5}[cuts]
    assert metrics["value_start"] == pytest.approx((math.exp(-0.1) + math.exp(-1)) / 2)
    assert metrics["value_end"] == pytest.approx(((expected[0, 4] + expected[1, 2]) / 2).item())


def test_it_says_how_good_the_values_are():
    rollout = make_example()
    metrics = numbers(ForcedAnswer().assign(rollout))
    errors = [(1 - value) ** 2 for value in told(5, 5, 15, 15, 25)] + [value**2 for value in told(50, 50, 50)]
    assert metrics["brier"] == pytest.approx(sum(errors) / 8)
    assert metrics["brier_group"] == 1.0  # each expects the reward of the other


def test_a_value_is_the_likelihood_of_the_answer_in_a_plain_pass_of_the_whole_text(policy):
    rollout, closing = sample_rollout(policy), ". So: "
    ForcedAnswer(closing, cuts="token").assign(rollout)
    assert not rollout.values[~rollout.mask].any()
    with torch.no_grad():
        for row, place in rollout.mask.nonzero().tolist():
            expected = read_answer(policy, rollout, row, place, closing).exp()
            assert_close(rollout.values[row, place], expected, atol=0, rtol=1e-3)


def test_values_depend_on_what_leads_to_the_answer(policy):
    values = []
    for closing in (" = ", "\n\nThe answer is "):
        rollout = sample_rollout(policy)
        ForcedAnswer(closing).assign(rollout)
        values.append(rollout.values[rollout.mask].log())
    assert (values[0] - values[1]).abs().min() > 0.1


def test_values_do_not_depend_on_the_reward():
    values = []
    for rewards in ((1.0, 0.0), (0.0, 1.0)):
        rollout = make_example()
        rollout.rewards = torch.tensor(rewards)
        ForcedAnswer().assign(rollout)
        values.append(rollout.values)
    assert torch.equal(*values)


def test_only_phrases_read_planning_tokens():
    assert "plan_mask" in ForcedAnswer(cuts="phrase").reads
    assert "plan_mask" not in ForcedAnswer().reads


def test_other_cuts_are_refused():
    with pytest.raises(ValueError, match="ForcedAnswer"):
        ForcedAnswer(cuts="word")  # pyright: ignore[reportArgumentType]


def test_at_turns_an_answer_is_forced_before_each():
    rollout = make_episodes([[0.0, 1.0], [0.0]])
    rollout.completion_ids = torch.tensor([[5, 10, 15, 20, 25, 30], [50, 60, 70, 80, 90, 95]])
    metrics = ForcedAnswer(cuts="turn").assign_checked(rollout)
    first, second, third = told(5, 20, 50)
    expected = torch.tensor([[first, first, 0.0, second, second, 0.0], [third, third, 0.0, 0.0, 0.0, 0.0]])
    assert_close(rollout.values, expected)
    assert metrics["prefixes"] == 1.5


def test_one_turn_has_the_value_of_one_sentence():
    by_turn, by_sentence = make_example(), make_example()
    by_sentence.tokens = [["Two", " and", " three", " and", " four"], PIECES[1]]
    ForcedAnswer(cuts="turn").assign(by_turn)
    ForcedAnswer().assign(by_sentence)
    assert torch.equal(by_turn.values, by_sentence.values)
    assert "turn" in ForcedAnswer(cuts="turn").reads
