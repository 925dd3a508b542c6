"""Gradients by another forward pass."""

import pytest
import torch
from torch.testing import assert_close

from rlcredit.training.recomputation import recompute_in_backward


def make_weights():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 3, generator=generator, requires_grad=True) for _ in range(3)]


def test_outputs_and_gradients_are_those_of_one_graph_and_unused_weights_have_none():
    weights, calls = make_weights(), []

    def compute():
        calls.append(torch.is_grad_enabled())
        product = weights[0] @ weights[1].tanh()
        return product.exp(), product.detach()

    first, second = recompute_in_backward(compute, weights)
    assert calls == [False]
    assert_close(second, weights[0] @ weights[1].tanh())
    found = torch.autograd.grad((first * torch.arange(9.0).view(3, 3)).sum() + second.sum(), weights, allow_unused=True)
    assert calls == [False, True]
    expected = torch.autograd.grad(
        ((weights[0] @ weights[1].tanh()).exp() * torch.arange(9.0).view(3, 3)).sum(), weights[:2]
    )
    for actual, known in zip(found[:2], expected, strict=True):
        assert_close(actual, known)
    assert found[2] is None


def test_several_parts_add_their_gradients_up_in_one_backward_pass():
    weights = make_weights()
    parts = [recompute_in_backward(lambda place=place: ((weights[0] * place).sin(),), weights)[0] for place in (1, 2)]
    torch.stack(parts).sum().backward()
    assert_close(weights[0].grad, weights[0].cos() + 2 * (2 * weights[0]).cos())
    assert weights[1].grad is None


@pytest.mark.parametrize("enabled", [True, False])
def test_the_second_pass_computes_in_the_precision_of_the_first(enabled):
    weights, kinds = make_weights(), []

    def compute():
        product = weights[0] @ weights[1]
        kinds.append(product.dtype)
        return (product.float(),)

    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
        (found,) = recompute_in_backward(compute, weights)
    found.sum().backward()
    assert kinds == [torch.bfloat16 if enabled else torch.float32] * 2
