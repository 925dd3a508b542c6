import pytest
import torch
from torch.testing import assert_close

from callbacks.tokens.gradient_size_mask import GradientSizeMask, squared_gradient_sizes
from tests.callbacks.rollouts import numbers, rollout_of


def test_the_size_is_that_of_the_gradient_with_respect_to_the_logits():
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    logprobs = logits.log_softmax(-1)
    (gradient,) = torch.autograd.grad(-1.5 * logprobs[1], logits)
    squares = logprobs.exp().square().sum()
    size = squared_gradient_sizes(torch.tensor(-1.5), logprobs[1].detach(), squares.detach())
    assert_close(size, gradient.square().sum())


def worked():
    """Two completions of four tokens, coins of the probabilities given and credit of both signs."""
    rollout = rollout_of([1.0, 0.0], 2, [[0.5] * 4] * 2, [[1.0] * 4, [-3.0, -3.0, 0.0, -3.0]])
    probability = torch.tensor([[0.5, 0.9, 1.0, 0.2], [0.9, 1.0, 0.5, 0.8]])
    rollout.old_logprobs = probability.log()
    rollout.sum_pi_squared = probability**2 + (1 - probability) ** 2
    return rollout  # sizes 2 A^2 (1 - pi)^2: 0.5, 0.02, 0, 1.28 and 0.18, 0, 0, 0.72


def test_the_largest_gradients_stay():
    rollout = worked()
    metrics = numbers(GradientSizeMask(share=0.25).assign(rollout))
    assert rollout.advantages.tolist() == [[0, 0, 0, 1], [0, 0, 0, -3]]
    assert metrics == pytest.approx({"requested_fraction": 0.25, "kept_fraction": 0.25, "size_fraction": 2.0 / 2.7})


def test_the_scope_says_among_which_tokens():
    rollout = worked()
    GradientSizeMask(share=0.5, scope="sequence").assign(rollout)
    assert rollout.advantages.tolist() == [[1, 0, 0, 1], [-3, 0, 0, -3]]


def test_a_batch_without_credit_loses_nothing():
    rollout = worked()
    rollout.advantages = torch.zeros(2, 4)
    assert numbers(GradientSizeMask().assign(rollout))["size_fraction"] == 1


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=rf"GradientSizeMask expects share in \(0, 1\], got {share}"):
        GradientSizeMask(share=share)
