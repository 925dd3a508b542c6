import pytest
import torch
from torch.testing import assert_close

from rlcredit.losses import ClipCov, EntropyBonus, ImportanceSampling
from tests.rlcredit.losses.batches import by_hand


def test_the_bonus_is_added_to_the_objective_and_has_a_gradient():
    old = torch.tensor([[0.5, 0.5]]).log()
    entropy = torch.tensor([[0.25, 0.75]], requires_grad=True)
    value, _, metrics = by_hand(EntropyBonus(beta=0.1), [[0.5, 0.5]], old, [[1.0, 0.0]], entropy_graph=entropy)
    assert value == pytest.approx(-(1 + 0.1 * (0.25 + 0.75)) / 2)
    assert_close(entropy.grad, torch.full((1, 2), -0.05))
    assert metrics["entropy_bonus"] == pytest.approx(0.05)


def test_it_needs_the_entropy_and_what_its_loss_needs_unless_it_is_off():
    assert EntropyBonus(ClipCov()).needs == {"token_uniforms", "entropy_graph"}
    assert EntropyBonus(beta=0).needs == ImportanceSampling.needs
    with pytest.raises(ValueError, match="beta >= 0"):
        EntropyBonus(beta=-0.1)


@pytest.mark.slow
@pytest.mark.parametrize("micro_batch_tokens", ["auto", 120])
def test_entropy_rises_without_any_credit(fit, micro_batch_tokens):
    """Rewards are all equal, so that the bonus alone teaches; in micro-batches it does likewise."""
    runs = [
        fit(steps=4, stack=[], loss=EntropyBonus(Nothing(), beta), lr=1e-2, micro_batch_tokens=micro_batch_tokens)
        for beta in (1.0, 0.0)
    ]
    risen, still = (run.history[-1]["train/entropy"] - run.history[0]["train/entropy"] for run in runs)
    assert risen > 0.02
    assert risen > still


class Nothing(ImportanceSampling):
    """A loss that teaches nothing."""

    def objective(self, logprobs, old_logprobs, advantages, mask, **facts):
        return 0 * super().objective(logprobs, old_logprobs, advantages, mask, **facts)
