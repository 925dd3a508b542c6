"""Agreement and direction, on gradients whose expectation is known."""

import pytest
import torch

from rlcredit.statistics.batch_agreement import agreement_and_direction, batch_gradients
from rlcredit.statistics.intervals import jackknife_interval

PROMPTS, SIZE = 400, 1000


def drawn(seed, direction, noise):
    """Gradients of expected length one along an axis; the variance of each is the square of ``noise``."""
    generator = torch.Generator().manual_seed(seed)
    found = noise / SIZE**0.5 * torch.randn(PROMPTS, SIZE, generator=generator, dtype=torch.float64)
    return found + torch.nn.functional.normalize(torch.tensor(direction, dtype=torch.float64), dim=0)


def compared(stack, baseline, size):
    rows = agreement_and_direction(batch_gradients(stack, size), batch_gradients(baseline, size))
    return [(row[0], *jackknife_interval(row[0], row[1:])[:2]) for row in rows]


AHEAD, ASIDE = [1.0] + [0.0] * (SIZE - 1), [1.0, 1.0] + [0.0] * (SIZE - 2)
TRUTHS = (1 / 5, 1 / 5 - 1 / 2, 0.5**0.5)
"""Of batches of four: squared signal over squared signal and noise."""


def test_agreement_and_direction_are_those_of_expectations():
    found = compared(drawn(1, ASIDE, noise=4.0), drawn(0, AHEAD, noise=2.0), size=4)
    for (estimate, low, high), truth in zip(found, TRUTHS, strict=True):
        assert low < truth < high
        assert low < estimate < high
        assert high - low < 0.2


def test_against_itself_nothing_is_left_to_chance():
    flat = drawn(0, AHEAD, noise=2.0)
    _, more, direction = compared(flat, flat, size=4)
    assert more == pytest.approx((0, 0, 0))
    assert direction == pytest.approx((1, 1, 1))


@pytest.mark.slow
def test_intervals_hold_what_they_say():
    held = 0
    for seed in range(50):
        found = compared(drawn(2 * seed, ASIDE, 4.0), drawn(2 * seed + 1, AHEAD, 2.0), size=4)
        held += sum(low < truth < high for (_, low, high), truth in zip(found, TRUTHS, strict=True))
    assert 0.88 < held / 150 < 0.99
