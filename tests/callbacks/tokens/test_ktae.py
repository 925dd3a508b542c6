import math

import pytest
import torch

from callbacks.tokens.ktae import KTAE, key_token_credit
from rlcredit.formulas.contingency_tables import key_token_values
from tests.callbacks.rollouts import numbers, rollout_of_ids

END, KEY, FILL = 0, 1, 2
RIGHT = [*[[KEY, FILL, END]] * 4, [FILL, FILL, END]]
WRONG = [[FILL, FILL, END]] * 3
REWARDS = [1.0] * 5 + [0.0] * 3


def credit_of(frequency, rewards=REWARDS):
    rollout = rollout_of_ids(rewards, [*RIGHT, *WRONG])
    return key_token_credit(rollout.verdicts, rollout.completion_ids, rollout.mask, 8, frequency), rollout


def test_the_worked_example_without_frequencies():
    credit, _ = credit_of(frequency=0.0)
    strength = math.exp(-2 / 7) + 0.5488  # Fisher's p is 8 of 56, and the token tells 0.549 bits
    assert credit[0, 0].item() == pytest.approx(math.tanh(strength * math.asin(math.sqrt(0.8)) / 4), abs=1e-4)
    assert credit[0, 0].item() == pytest.approx(0.345, abs=1e-3)
    assert credit[0].tolist()[1:] == [0.0, 0.0]  # all contain the second, and the end token gets none
    assert not credit[5:].any()


def test_the_ratio_of_frequencies_saturates_where_one_side_never_uses_a_token():
    credit, _ = credit_of(frequency=1.0)
    assert credit[0, 0].item() == pytest.approx(1.0)
    table, uses = torch.tensor([[1.0], [0.0], [4.0], [3.0]]).double(), torch.tensor([[1.0], [0.0]])
    tokens = torch.tensor([[500.0], [300.0]])  # one use in one right answer: Fisher's p is 1
    assert key_token_values(table, uses, tokens, frequency=1.0).item() > 0.9999
    assert key_token_values(table, uses, tokens, frequency=0.0).item() < 0.02


def test_turning_the_verdicts_round_turns_the_sign():
    for frequency in (0.0, 1.0):
        there, _ = credit_of(frequency)
        back, _ = credit_of(frequency, [1 - reward for reward in REWARDS])
        assert torch.allclose(there, -back)


@pytest.mark.parametrize("rewards", [[1.0] * 8, [0.0] * 8, [0.5] * 8])
def test_groups_without_right_or_without_wrong_answers_get_nothing(rewards):
    credit, _ = credit_of(1.0, rewards)
    assert not credit.any()


def test_it_adds_to_the_credit_above_it_and_reaches_wrong_answers_too():
    _, rollout = credit_of(1.0)
    rollout.completion_ids[7, 0] = KEY
    rollout.advantages = torch.full((8, 3), -0.5)
    metrics = numbers(KTAE(weight=0.5, frequency=0.0).assign(rollout))
    assert rollout.advantages[7, 0] > -0.5
    assert rollout.advantages[7, 0] == rollout.advantages[0, 0]
    assert metrics["added_mean"] > 0
    assert metrics["saturated_fraction"] == 0


def test_each_group_has_a_table_of_its_own():
    alone, rollout = credit_of(1.0)
    ids, mask = (torch.cat([value, value]) for value in (rollout.completion_ids, rollout.mask))
    verdicts = torch.cat([rollout.verdicts, torch.zeros(8)])
    both = key_token_credit(verdicts, ids, mask, 8, 1.0)
    assert torch.equal(both[:8], alone)
    assert not both[8:].any()


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match=r"KTAE expects weight >= 0 and frequency >= 0, got -1 and 1.0"):
        KTAE(weight=-1)
