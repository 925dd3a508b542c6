import pytest
import torch

from rlcredit.oracle.credit_agreement import captured_mass, roc_area_under_curve, signal_rank_correlation


def test_constant_scores_find_as_much_as_chance():
    mass, flat = torch.tensor([3.0, 1.0, 0.0, 0.0]), torch.ones(4)
    assert captured_mass(mass, flat, 0.2) == pytest.approx(0.2)
    assert roc_area_under_curve(flat, mass > 0) == 0.5
    assert signal_rank_correlation(flat, mass) == 0
    assert captured_mass(0 * mass, mass, 0.5) == 0
    assert roc_area_under_curve(mass, mass > 9) == 0.5
