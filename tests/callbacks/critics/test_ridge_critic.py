import numpy as np
import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.ridge_critic import RidgeCritic, ridge_weights


def draw_problem(prefixes, features=4, seed=0):
    """Return random features and returns, shapes (N, F) and (N,)."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(prefixes, features)), generator.random(prefixes)


def least_squares(inputs, targets, ridge):
    """Return the weights of ridge regression as least squares: every penalty is a row more."""
    penalty = ridge * np.mean(np.sum(inputs**2, 0))
    rows = np.concatenate([inputs, np.sqrt(penalty) * np.eye(inputs.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([targets, np.zeros(inputs.shape[1])]), rcond=None)[0]


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 3.0])
def test_ridge_weights_are_those_of_least_squares(ridge):
    inputs, targets = draw_problem(50)
    weights = ridge_weights(torch.tensor(inputs.T @ inputs), torch.tensor(inputs.T @ targets), ridge)
    assert_close(weights.numpy(), least_squares(inputs, targets, ridge), atol=1e-10, rtol=0)


def test_forgetting_weighs_earlier_rollouts_less():
    critic, seen, none = RidgeCritic(forgetting=0.5, ridge=0.1), [], torch.Generator()
    for place, prefixes in enumerate((30, 20, 40)):
        features, returns = draw_problem(prefixes, seed=place)
        loss = critic.fit(torch.tensor(features), torch.tensor(returns), none)
        # It learns how far the return lies from its last feature, with a constant beside the features.
        inputs, targets = np.c_[features, np.ones(prefixes)], returns - features[:, -1]
        seen.append((inputs, targets))
    scale = [np.sqrt(0.5 ** (2 - place)) for place in range(3)]
    weights = least_squares(
        np.concatenate([factor * inputs for factor, (inputs, _) in zip(scale, seen)]),
        np.concatenate([factor * targets for factor, (_, targets) in zip(scale, seen)]),
        ridge=0.1,
    )
    assert loss.item() == pytest.approx(np.mean((inputs @ weights - targets) ** 2))
    features, _ = draw_problem(7, seed=9)
    expected = np.c_[features, np.ones(7)] @ weights + features[:, -1]
    assert_close(critic.make_predictor()(torch.tensor(features)).numpy(), expected.astype(np.float32))


@pytest.mark.parametrize("arguments", [{"forgetting": 0.0}, {"forgetting": 1.1}, {"ridge": 0.0}])
def test_a_penalty_of_nothing_and_a_memory_of_more_than_all_are_refused(arguments):
    with pytest.raises(ValueError, match="RidgeCritic expects"):
        RidgeCritic(**arguments)
