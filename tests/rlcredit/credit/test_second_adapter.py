"""Steps of a second adapter against plain AdamW, and the policy that it leaves alone."""

import copy

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.second_adapter import SecondAdapter, share_of_all
from tests.conftest import make_rollout
from tests.rlcredit.training.sampled_rollouts import make_lookahead, sample_rollout


def squared_error(rows, states, others):
    """Loss of some rows: how far a linear reading of their states lies from their numbers."""
    return (states @ others[0] - rows[:, None, None]).square().mean(-1).mean(-1).sum()


def make_adapter(rollout, seed=0):
    """A fresh adapter with a linear reading of one output."""
    noise = torch.Generator().manual_seed(seed)
    factors = rollout.lookahead.create_adapter(noise)
    return SecondAdapter(factors, [torch.randn(rollout.lookahead.hidden_size, 1, generator=noise)])


@pytest.mark.parametrize("largest_norm", [1.0, 1e9])
def test_its_steps_are_those_of_plain_adamw(largest_norm):
    rollout = make_rollout()
    adapter = make_adapter(rollout)
    weights = [torch.nn.Parameter(weight.clone()) for weight in (*adapter.factors, *adapter.others)]
    optimizer = torch.optim.AdamW(weights, lr=0.1, weight_decay=0.0)
    for _ in range(3):
        told = adapter.improve(rollout, squared_error, rate=0.1, largest_norm=largest_norm)
        ids = rollout.completion_ids.roll(1, 1)
        ids[:, 0] = 0
        states = (ids[..., None] * torch.tensor([1.0, 2.0, 3.0, 4.0])).sin()
        loss = squared_error(torch.arange(8), states + states @ weights[0] @ weights[1], weights[2:])
        optimizer.zero_grad()
        loss.backward()
        assert torch.nn.utils.clip_grad_norm_(weights, largest_norm) > 1.0
        optimizer.step()
        assert_close(told, loss.detach())
        for found, expected in zip([*adapter.factors, *adapter.others], weights, strict=True):
            assert_close(found, expected.detach())
            assert not found.requires_grad


def test_a_copy_stays_as_it_was():
    rollout = make_rollout()
    adapter = make_adapter(rollout)
    adapter.improve(rollout, squared_error, rate=0.1)
    kept, expected = SecondAdapter(**vars(adapter)), copy.deepcopy(vars(adapter))
    adapter.improve(rollout, squared_error, rate=0.1)
    assert not torch.equal(adapter.factors[1], kept.factors[1])
    same = SecondAdapter(**expected)
    losses = [each.improve(rollout, squared_error, rate=0.1) for each in (kept, same)]
    assert torch.equal(*losses)
    for found, other in zip([*kept.factors, *kept.others], [*same.factors, *same.others], strict=True):
        assert torch.equal(found, other)


def test_learning_lowers_the_loss_of_a_real_policy(policy):
    rollout = sample_rollout(policy)
    adapter = make_adapter(rollout)
    losses = [adapter.improve(rollout, squared_error, rate=1e-3).item() for _ in range(8)]
    assert losses[-1] < 0.8 * losses[0]


def test_the_gradient_does_not_depend_on_how_rows_are_cut(policy):
    rollout, steps = sample_rollout(policy), {}

    def first_error(rows, states, others):
        return (states[:, 0] @ others[0] - rows[:, None]).square().sum()

    for size in ("auto", 60):
        rollout.lookahead = make_lookahead(policy, size)
        adapter = make_adapter(rollout)
        loss = adapter.improve(rollout, first_error, rate=1e-3)
        moments = [state["exp_avg"] for state in adapter.moments["state"].values()]
        steps[size] = [loss, *moments]
    for whole, cut in zip(steps["auto"], steps[60], strict=True):
        assert_close(whole, cut, atol=1e-6, rtol=1e-4)


def test_the_policy_keeps_its_own_adapter_and_its_gradients_bit_for_bit(policy):
    rollout = sample_rollout(policy)
    own = {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}
    before = {name: weight.detach().clone() for name, weight in own.items()}
    hidden = rollout.lookahead.read_hidden(rollout)
    noise = torch.Generator().manual_seed(1)
    gradients = {name: torch.randn(weight.shape, generator=noise) for name, weight in own.items()}
    try:
        for name, weight in own.items():
            weight.grad = gradients[name].clone()
        adapter = make_adapter(rollout)
        for _ in range(2):
            adapter.improve(rollout, squared_error, rate=0.1)
        with torch.no_grad():
            list(adapter.iterate_states(rollout))
        after = dict(policy.named_parameters())
        for name, weight in own.items():
            assert after[name] is weight
            assert torch.equal(weight, before[name])
            assert torch.equal(weight.grad, gradients[name])
    finally:
        for weight in own.values():
            weight.grad = None
    assert torch.equal(rollout.lookahead.read_hidden(rollout), hidden)


def test_an_error_amid_reading_gives_the_policy_its_adapter_back(policy):
    rollout = sample_rollout(policy)
    own = [weight for weight in policy.parameters() if weight.requires_grad]
    adapter = make_adapter(rollout)

    def fail(rows, states, others):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        adapter.improve(rollout, fail, rate=0.1)
    assert all(one is two for one, two in zip(own, (w for w in policy.parameters() if w.requires_grad), strict=True))
    assert adapter.moments == {}


def test_shares_are_of_what_counts_and_nothing_divides_by_zero():
    assert share_of_all(torch.tensor([[True, False], [True, True]])) == pytest.approx(1 / 3)
    assert share_of_all(torch.zeros(2, dtype=torch.bool)) == 0.0
