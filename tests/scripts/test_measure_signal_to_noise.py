"""Signal, noise and direction, on gradients whose expectation is known."""

import measure_signal_to_noise as script
import pytest
import torch

PROMPTS, SIZE = 400, 50


def drawn(seed, direction, noise):
    """Gradients of expected length one along an axis; the variance of each is the square of ``noise``."""
    generator = torch.Generator().manual_seed(seed)
    found = noise / SIZE**0.5 * torch.randn(PROMPTS, SIZE, generator=generator, dtype=torch.float64)
    return found + torch.nn.functional.normalize(torch.tensor(direction, dtype=torch.float64), dim=0)


AHEAD, ASIDE = [1.0] + [0.0] * (SIZE - 1), [1.0, 1.0] + [0.0] * (SIZE - 2)


def test_ratio_and_direction_are_those_of_expectations():
    flat, other = drawn(0, AHEAD, noise=2.0), drawn(1, ASIDE, noise=4.0)
    ratio, relative, cosine = script.compared(other, flat, batch=4)
    for (estimate, low, high), truth in zip((ratio, relative, cosine), (4 / 16, 1 / 4, 0.5**0.5), strict=True):
        assert low < truth < high
        assert low < estimate < high
        assert high - low < truth


def test_against_itself_nothing_is_left_to_chance():
    flat = drawn(0, AHEAD, noise=2.0)
    _, relative, cosine = script.compared(flat, flat, batch=4)
    assert relative == pytest.approx((1, 1, 1))
    assert cosine == pytest.approx((1, 1, 1))


def test_intervals_hold_what_they_say():
    held = 0
    for seed in range(100):
        found = script.compared(drawn(2 * seed, ASIDE, 4.0), drawn(2 * seed + 1, AHEAD, 2.0), batch=4)
        held += sum(low < truth < high for (_, low, high), truth in zip(found, (1 / 4, 1 / 4, 0.5**0.5), strict=True))
    assert 0.90 < held / 300 < 0.99
