"""Batches whose policy has moved on, and what a loss makes of them."""

import torch

from tests.conftest import make_rollout

FOUR_AND_ONE = torch.tensor([[True, True, True, True], [True, False, False, False]])
"""The mask of a completion of four tokens and of one of a single token."""

MOVED = [[-1.0, -2.0, -1.0, -2.0]]
CREDIT = [[3.0, 1.0, -1.0, -1.0]]
"""Log-probabilities and advantages with means -1.5 and 0.5: shares in their covariance 1.25, -0.25, -0.75 and 0.75."""


def batch(seed, spread=0.6):
    """A rollout whose policy has moved on, with random credit per token."""
    generator = torch.Generator().manual_seed(seed)
    rollout = make_rollout(width=7, seed=seed)
    shape = rollout.mask.shape
    rollout.advantages = torch.randn(shape, generator=generator)
    rollout.logprobs = (rollout.old_logprobs + spread * torch.randn(shape, generator=generator)).requires_grad_()
    rollout.now = torch.rand(shape, generator=generator)
    rollout.uniforms = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    return rollout


def facts(loss, rollout, update=1):
    known = {
        "entropy": rollout.now,
        "entropy_graph": rollout.now,
        "old_entropy": rollout.entropy,
        "ref_logprobs": rollout.ref_logprobs,
        "update": update,
        "token_uniforms": rollout.uniforms,
    }
    return {name: known[name] for name in loss.needs}


def value_and_gradient(loss, rollout, update=1):
    logprobs = rollout.logprobs.detach().clone().requires_grad_()
    value = loss(logprobs, rollout.old_logprobs, rollout.advantages, rollout.mask, **facts(loss, rollout, update))
    value.backward()
    return value.item(), logprobs.grad


def ragged(values, mask):
    return [row[kept].detach().double().tolist() for row, kept in zip(values, mask)]


def by_hand(loss, probabilities, old_logprobs, advantages, **facts):
    """Return value, slopes and metrics of a loss for tokens of these probabilities, none of them padding."""
    logprobs = torch.as_tensor(probabilities).log().requires_grad_()
    batch = (logprobs, old_logprobs, torch.tensor(advantages), torch.ones_like(logprobs, dtype=torch.bool))
    value = loss(*batch, **facts)
    value.backward()
    told = {name: share.detach().item() for name, share in loss.metrics(*batch, **facts).items()}
    return value.item(), logprobs.grad.tolist(), told
