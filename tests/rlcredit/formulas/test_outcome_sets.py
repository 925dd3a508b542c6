import pytest
import torch

from rlcredit.formulas.outcome_sets import shaped_rewards
from tests.callbacks.published_gtpo import ALIVE, ENTROPY, kept


def test_one_completion_alive_gets_the_whole_bonus_and_a_certain_wrong_token_nearly_all_of_the_malus():
    alone, _ = shaped_rewards(torch.tensor([1.0, 0.0]), ENTROPY[:2], ALIVE[:2], 2, 1.0, 0.1, 1e-8)
    assert kept(alone.sum(0)[0], ALIVE[:2]) == pytest.approx([1.1] * 3 + [-1.1] * 2)
    entropy = torch.tensor([[1.0], [0.0]])
    shaped, _ = shaped_rewards(torch.zeros(2), entropy, torch.ones(2, 1, dtype=torch.bool), 2, 1.0, 0.1, 1e-8)
    assert shaped.sum(0).flatten().tolist() == pytest.approx([-1.0, -1.2], abs=1e-6)
