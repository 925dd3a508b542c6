import math

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.value_network import ValueNetwork
from rlcredit.formulas.reward_histogram import RewardHistogram


def silu(value):
    return value / (1 + math.exp(-value))


def test_outputs_of_a_network_that_a_person_can_compute():
    weights = [torch.tensor(weight) for weight in ([[1.0, -1.0]], [0.5], [[2.0]], [-1.0], [[3.0], [-1.0]], [0.25, 0.0])]
    network = ValueNetwork(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 1.0]), weights)
    first = silu((3.0 - 1.0) / 2.0 - 0.75 + 0.5)
    second = silu(2 * first - 1)
    assert_close(network.outputs(torch.tensor([[3.0, 0.75]])), torch.tensor([[3 * second + 0.25, -second]]))


def test_features_are_centred_and_scaled_but_never_blown_up():
    features = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    network = ValueNetwork.for_features(features, width=3, outputs=2, noise=torch.Generator().manual_seed(0))
    assert network.center.tolist() == [2.0, 5.0]
    assert_close(network.scale, torch.tensor([1.0, 0.1]))
    assert [tuple(weight.shape) for weight in network.weights] == [(3, 2), (3,), (3, 3), (3,), (2, 3), (2,)]
    assert all(weight.abs().max() < 1 / math.sqrt(2) for weight in network.weights)


def learn_exclusive_or(steps):
    """Return a network, its loss and its weights before, after some steps on what no linear function tells."""
    features = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    noise = torch.Generator().manual_seed(0)
    network = ValueNetwork.for_features(features, width=16, outputs=2, noise=noise)
    before = network.weights
    shares = RewardHistogram().shares(torch.tensor([0.0, 1.0, 1.0, 0.0]))
    loss = network.improve(features, shares, steps, batch=32, rate=0.02, decay=0.0, noise=noise)
    return network, loss, before, features


def test_it_learns_what_no_linear_function_tells():
    network, loss, _, features = learn_exclusive_or(steps=200)
    assert loss < 0.02
    means = RewardHistogram().mean(network.outputs(features))
    assert_close(means, torch.tensor([0.0, 1.0, 1.0, 0.0]), atol=0.05, rtol=0)


def test_learning_leaves_the_weights_of_others_as_they_are():
    network, _, before, _ = learn_exclusive_or(steps=1)
    noise = torch.Generator().manual_seed(0)
    again = ValueNetwork.for_features(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), width=16, outputs=2, noise=noise)
    assert all(torch.equal(one, two) for one, two in zip(before, again.weights))
    assert not any(torch.equal(one, two) for one, two in zip(before, network.weights))


def test_the_optimizer_goes_on_where_it_stopped():
    features, shares = torch.randn(8, 2, generator=torch.Generator().manual_seed(1)), torch.full((8, 2), 0.5)
    shares[::2] = torch.tensor([1.0, 0.0])
    results = []
    for parts in ([6], [2, 4]):
        noise = torch.Generator().manual_seed(0)
        network = ValueNetwork.for_features(features, width=4, outputs=2, noise=noise)
        for steps in parts:
            network.improve(features, shares, steps, batch=4, rate=0.01, decay=0.1, noise=noise)
        results.append(network.weights)
    for one, two in zip(*results):
        assert_close(one, two, atol=1e-7, rtol=0)


def test_the_loss_is_the_cross_entropy_of_the_last_batch():
    features, shares = torch.ones(1, 2), torch.tensor([[0.25, 0.75]])
    network = ValueNetwork.for_features(features, width=4, outputs=2, noise=torch.Generator().manual_seed(0))
    log_p = network.outputs(features)[0].log_softmax(-1)
    loss = network.improve(features, shares, 1, batch=3, rate=0.1, decay=0.0, noise=torch.Generator())
    assert loss.item() == pytest.approx(-(0.25 * log_p[0] + 0.75 * log_p[1]).item())
