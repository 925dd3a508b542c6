import pytest
import torch

from callbacks.probes.noise_floor import full_batch_cosine, signal_to_noise, split_half_cosines


def test_halves_of_orthogonal_prompts_agree_as_chance_has_it():
    assert (split_half_cosines(torch.eye(8, dtype=torch.float64), 50, seed=0) == 0).all()
    # Prompts that share one direction of length one and have one of their own of length one: 4 a half.
    products = torch.eye(8, dtype=torch.float64) + 1
    halves = split_half_cosines(products, 5, seed=0, resample=False)
    assert halves.tolist() == pytest.approx([16 / 20] * 5)
    assert full_batch_cosine(16 / 20) == pytest.approx(64 / 72)
    assert signal_to_noise(products) == pytest.approx(8.0)
    assert (split_half_cosines(products, 200, seed=0) < 16 / 20 + 1e-9).all()
