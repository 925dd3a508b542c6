import pytest
import torch

from callbacks.tokens.quadrant_mask import QuadrantMask
from rlcredit.formulas.quadrants import ALL_QUADRANTS
from tests.callbacks.rollouts import of_all_quadrants


@pytest.mark.parametrize(("name", "left"), list(zip(ALL_QUADRANTS, [2, 2, 1, 2])))
def test_one_quadrant_alone(name, left):
    rollout = of_all_quadrants()
    before = rollout.advantages
    metrics = QuadrantMask(keep=(name,)).assign(rollout)
    kept = rollout.advantages != 0
    assert int(kept.sum()) == left
    assert torch.equal(rollout.advantages[kept], before[kept])
    assert metrics["kept_fraction"].item() == pytest.approx(left / 7)
