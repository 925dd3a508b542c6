import pytest
import torch

from callbacks.episode.grpos import grpo_s_advantages
from rlcredit.formulas.outcome_sets import shaped_rewards
from tests.callbacks.published_gtpo import ALIVE, CORRECT, ENTROPY, SHAPED


def test_grpo_s_shapes_the_published_example():
    means = torch.tensor([[7 / 3], [2.0], [2.5], [2.25]])
    shaped, _ = shaped_rewards(CORRECT, means, torch.ones(4, 1, dtype=torch.bool), **SHAPED)
    assert shaped.sum(0).flatten().tolist() == pytest.approx([1.107692, 1.092308, -1.094737, -1.105263], abs=5e-7)
    signs = grpo_s_advantages(CORRECT, ENTROPY, ALIVE, 4).sign().tolist()
    assert signs == [1, 1, -1, -1]
