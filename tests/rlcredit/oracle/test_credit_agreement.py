"""Scores of a signal against true credit."""

import pytest
import torch

from rlcredit.oracle.credit_agreement import (
    credit_fork_mask,
    measure_credit_cosines,
    measure_credit_detection,
    measure_token_information,
    measure_wrong_signs,
    signal_rank_correlation,
)
from rlcredit.oracle.credit_estimate import TrueCredit, true_credit


def found(credit, p):
    credit = torch.tensor(credit, dtype=torch.float64)
    mask, values = torch.ones_like(credit, dtype=torch.bool), torch.zeros(len(credit), credit.shape[1] + 1)
    return TrueCredit(
        [0], values, credit, 0 * credit, credit**2, torch.tensor(p, dtype=torch.float64), mask, 0 * credit
    )


def test_scores_by_hand():
    credit = found([[0.0, 0.5, -0.3, 0.1, 0.0]], p=[[1.0, 0.001, 0.01, 0.5, 1.0]])
    assert credit_fork_mask(credit).tolist() == [[False, True, True, False, False]]
    # The score ranks one fork first and one third of five. Squares of credit: 0.25, 0.09 and 0.01.
    scores = measure_credit_detection(credit, torch.tensor([[0.2, 0.9, -0.4, 0.5, 0.1]]))
    assert scores["auc"] == pytest.approx(5 / 6)
    assert scores["mass_20"] == pytest.approx(0.25 / 0.35)
    assert scores["mass_10"] == pytest.approx(0.125 / 0.35)
    assert measure_credit_cosines(credit, credit.credit) == pytest.approx({"cosine": 1, "cosine_within": 1})
    flat = measure_credit_cosines(credit, torch.ones(1, 5))
    assert flat["cosine"] == pytest.approx(0.3 / (5 * 0.35) ** 0.5)
    assert flat["cosine_within"] == 0


def test_polarity_counts_the_forks_whose_advantage_has_the_other_sign():
    credit = found([[0.5, 0.5, -0.5, -0.5, 0.5]], p=[[0.001, 0.001, 0.001, 0.001, 0.5]])
    shares = measure_wrong_signs(credit, torch.tensor([[1.0, -1.0, 1.0, 0.0, -1.0]]))
    assert shares == {"opposite": 0.5, "good_punished": 0.25, "bad_rewarded": 0.25}
    assert measure_wrong_signs(found([[0.5, 0.5]], p=[[0.5, 0.5]]), torch.ones(1, 2)) == {}


def test_information_stands_beside_entropy_by_its_size():
    credit = found([[0.0, 0.0, 0.0, 0.0]], p=[[1.0] * 4])
    credit.information = torch.tensor([[0.1, 0.3, 0.0, 0.0]], dtype=torch.float64)
    values = measure_token_information(credit, torch.tensor([[0.5, 0.9, 0.0, 0.2]]), bins=2)
    expected = {"information": 0.1, "entropy": 0.4, "information_1_of_2": 0.0, "entropy_1_of_2": 0.1}
    assert values == pytest.approx({**expected, "information_2_of_2": 0.2, "entropy_2_of_2": 0.7})


def test_noise_is_not_taken_for_credit():
    # No token has credit, but many are uncertain, and there the estimates are noisy: |estimate| follows uncertainty.
    generator = torch.Generator().manual_seed(0)
    uncertain = torch.rand(400, 50, generator=generator) ** 3
    flips = torch.rand(400, 50, 64, generator=generator) < uncertain[..., None]
    right = torch.zeros(400, 51, 64, dtype=torch.float64)
    right[:, 0] = (torch.rand(400, 64, generator=generator) < 0.5).double()
    for t in range(50):
        redrawn = (torch.rand(400, 64, generator=generator) < 0.5).double()
        right[:, t + 1] = redrawn.where(flips[:, t], right[:, t])
    credit = true_credit(range(400), right, torch.ones(400, 50, dtype=torch.bool))
    scores = measure_credit_detection(credit, uncertain)
    assert signal_rank_correlation(uncertain.flatten(), credit.credit.abs().flatten()) > 0.5
    assert scores["rank"] == pytest.approx(0, abs=0.03)
    assert credit_fork_mask(credit).double().mean() < 1e-3
    assert credit.square.mean().abs() < 0.05 * credit.credit.square().mean()
