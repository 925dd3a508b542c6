import pytest
import torch

from rlcredit.training.nan_and_mismatch import find_sampler_fault

RATIOS = {"train/ratio_min": torch.tensor(0.76), "train/ratio_max": torch.tensor(1.42)}


@pytest.mark.parametrize(("divergence", "tolerance", "stops"), [(0.5e-4, 0.0101, False), (0.5e-4, 0.0099, True)])
def test_the_bound_is_a_root_mean_square(divergence, tolerance, stops):
    # log ratios of 0.01 everywhere: KL = 0.01^2 / 2
    assert bool(find_sampler_fault(7, divergence, RATIOS, tolerance)) == stops
