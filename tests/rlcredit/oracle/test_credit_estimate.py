import math

import pytest
import torch

from rlcredit.oracle.credit_estimate import true_credit, verdict_information


def test_credit_by_hand():
    # Four continuations: one token makes two of them right, the next makes one of these wrong and another one right.
    right = torch.tensor([[[0.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]]], dtype=torch.float64)
    credit = true_credit([5], right, torch.ones(1, 2, dtype=torch.bool))
    assert credit.values.tolist() == [[0, 0.5, 0.5]]
    assert credit.credit.tolist() == [[0.5, 0]]
    assert credit.p.tolist() == [[0.5, 1]]  # two heads of two, and one of two
    # Halves are continuations 0 and 2, and 1 and 3: one half each of the first, then 0 (one lost, one won) and 0.
    assert credit.square.tolist() == [[0.25, 0]]
    assert credit.error[0, 0].item() == pytest.approx((1 / 3 / 4) ** 0.5)


def branching(share, before, after, samples, states=4000):
    """Outcomes of a token that leads to one of two values, with a certain share to the first."""
    generator = torch.Generator().manual_seed(0)
    first = torch.rand(states, generator=generator) < share
    value = torch.where(first, *(torch.tensor(v) for v in after))
    right = torch.rand(states, 2, samples, generator=generator)
    return torch.stack([right[:, 0] < before, right[:, 1] < value[:, None]], 1).double()


def test_the_mean_information_is_the_mutual_information_of_token_and_verdict():
    share, after = 0.25, (0.9, 0.3)
    before = share * after[0] + (1 - share) * after[1]
    exact = sum(
        p * (v * math.log(v / before) + (1 - v) * math.log((1 - v) / (1 - before)))
        for p, v in zip((share, 1 - share), after)
    )
    estimate = verdict_information(branching(share, before, after, samples=64)).mean().item()
    assert estimate == pytest.approx(exact, abs=0.005)
    assert exact < -(share * math.log(share) + (1 - share) * math.log(1 - share)), "the entropy is the bound"


def test_a_token_without_credit_says_nothing():
    assert verdict_information(branching(0.5, 0.4, (0.4, 0.4), samples=64)).mean().item() == pytest.approx(0, abs=0.002)
    fixed = torch.ones(1, 3, 8, dtype=torch.float64)
    assert not verdict_information(fixed).any()
