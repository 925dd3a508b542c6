import pytest
import torch

from callbacks.tokens.stride import STRIDE
from rlcredit.formulas.token_grams import gram_scores
from rlcredit.formulas.turns import number_turns
from tests.callbacks.rollouts import episodes_of, numbers, rollout_of_ids

IDS = [[5, 6, 7], [5, 6, 8], [9, 6, 9], [5, 6, 8]]
ENTROPY = [[2.0, 2.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0]]  # one nat in the mean
SCORES = [[1 / 3, 1 / 3, 1 / 4], [1 / 4, 1 / 4, 0], [-1 / 4, -0.3, -0.3], [1 / 4, 1 / 4, 0]]
"""Pairs 5 6 (both right answers, one wrong: +1/2), 6 7 (+1/2), 6 8 (0), 9 6 and 6 9 (-1/2), times their entropy h / (h
+ 1): 2/3 for two nats, 1/2 for one, 0.6 for one and a half. The second token of a row takes the stronger pair."""


def two_right_two_wrong(rewards=(1.0, 1.0, 0.0, 0.0)):
    rollout = rollout_of_ids(list(rewards), IDS)
    rollout.entropy = torch.tensor(ENTROPY)
    rollout.advantages = 0.5 * (2 * torch.tensor(rewards) - 1)[:, None].expand(4, 3)
    return rollout


def scores_of(rollout, length=2):
    return gram_scores(
        rollout.verdicts, rollout.completion_ids, rollout.entropy, rollout.turn, rollout.group_size, length
    )


def test_the_worked_example_of_four_completions():
    rollout = two_right_two_wrong()
    torch.testing.assert_close(scores_of(rollout), torch.tensor(SCORES).double())
    metrics = numbers(STRIDE(length=2).assign(rollout))
    expected = [[2 / 3, 2 / 3, 5 / 8], [5 / 8, 5 / 8, 1 / 2], [-5 / 8, -0.65, -0.65], [-3 / 8, -3 / 8, -1 / 2]]
    torch.testing.assert_close(rollout.advantages, torch.tensor(expected))
    assert metrics["change_mean"] == pytest.approx((2 / 3 + 1 / 4 + 1 / 2 + 1 / 4 + 0.6 + 1 / 2) / 12)
    assert metrics["shrunk_fraction"] == pytest.approx(2 / 12)  # the pair of right answers in the wrong one


def test_a_negative_strength_weighs_the_same_tokens_in_the_opposite_direction():
    there, back = two_right_two_wrong(), two_right_two_wrong()
    STRIDE(strength=0.5, length=2).assign(there)
    STRIDE(strength=-0.5, length=2).assign(back)
    torch.testing.assert_close(there.advantages + back.advantages, 2 * two_right_two_wrong().advantages)


def test_single_tokens_are_n_grams_of_length_one():
    scores = scores_of(two_right_two_wrong(), length=1)
    assert scores[0].tolist() == pytest.approx([2 / 3 / 2, 0, 0])  # 5: 1 - 1/2; 6 is everywhere; 7 is certain
    assert scores[2].tolist() == pytest.approx([0, 0, -1 / 4])


def test_turning_the_verdicts_round_turns_the_sign():
    there, back = two_right_two_wrong(), two_right_two_wrong((0.0, 0.0, 1.0, 1.0))
    torch.testing.assert_close(scores_of(there), -scores_of(back))


@pytest.mark.parametrize("rewards", [(1.0,) * 4, (0.0,) * 4, (0.5,) * 4])
def test_groups_with_one_kind_of_outcome_are_unchanged(rewards):
    rollout = two_right_two_wrong(rewards)
    old_credit = rollout.advantages.clone()
    STRIDE(length=2).assign(rollout)
    assert torch.equal(rollout.advantages, old_credit)


def test_an_answer_without_a_verdict_neither_counts_nor_changes():
    rollout = two_right_two_wrong()
    rollout.judged = torch.tensor([True, True, True, False])
    scores = scores_of(rollout)
    assert not scores[3].any()
    assert scores[1, 0] == pytest.approx(1 / (1 + 10 / 9))  # 5 6 is in no wrong answer any more; the mean is 10 / 9


def test_no_n_gram_crosses_a_gap_or_a_turn():
    rollout = episodes_of(["abXcd", "abXcd", "abcd", "bcd"], [1.0, 1.0, 0.0, 0.0], group_size=4)
    rollout.entropy = torch.ones_like(rollout.entropy)
    scores = scores_of(rollout)
    assert scores[0].tolist() == [0.25, 0.25, 0, 0, 0]  # ab: 1 - 1/2; cd: 1 - 1; there is no bc, and no Xc
    assert scores[3].tolist() == [-0.5, -0.5, 0, 0, 0]  # bc: 0 - 1
    closed = rollout_of_ids([1.0, 0.0], [[1, 2, 3, 4], [1, 2, 3, 4]])
    closed.entropy = torch.ones_like(closed.entropy)
    assert not scores_of(closed).any()
    closed.turn = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]])  # 2 3 is a pair of the second answer only
    assert scores_of(closed).tolist() == [[0, 0, 0, 0], [0, -0.5, -0.5, 0]]


def test_answers_shorter_than_the_n_gram_have_none():
    rollout = rollout_of_ids([1.0, 0.0], [[1, 2], [1]])
    assert torch.equal(rollout.turn, number_turns(rollout.mask))
    assert not scores_of(rollout, length=3).any()


def test_each_group_has_its_own_table():
    rollout = two_right_two_wrong()
    ids, entropy, turn = (
        torch.cat([value, value]) for value in (rollout.completion_ids, rollout.entropy, rollout.turn)
    )
    both = gram_scores(torch.cat([rollout.verdicts, torch.zeros(4)]), ids, entropy, turn, 4, 2)
    assert torch.equal(both[:4], scores_of(rollout))
    assert not both[4:].any()


@pytest.mark.parametrize("arguments", [{"strength": 1.5}, {"strength": -2.0}, {"length": 0}])
def test_strengths_that_flip_signs_and_empty_n_grams_are_refused(arguments):
    with pytest.raises(ValueError, match=r"STRIDE expects strength in \[-1, 1\] and length >= 1"):
        STRIDE(**arguments)
