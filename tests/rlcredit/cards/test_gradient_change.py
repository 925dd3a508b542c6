"""How far gradients turn."""

from types import SimpleNamespace

import numpy as np
import pytest

from rlcredit.cards.gradient_change import measure_gradient_change

PROMPTS, SIZE, LENGTH = 60, 4, 40


def drawn(noise, seed=0):
    ahead = np.zeros(LENGTH)
    ahead[0] = 1.0
    return ahead + noise * np.random.default_rng(seed).normal(size=(PROMPTS, LENGTH))


def found(gradients, baseline):
    pair = (SimpleNamespace(gradients=each) for each in (gradients, baseline))
    return {one.name: one for one in measure_gradient_change(*pair, SIZE)}


def test_a_right_angle_and_twice_the_length():
    baseline = drawn(0.05)
    other = 2 * np.roll(baseline, 1, axis=1)
    result = found(other, baseline)
    assert result["angle"].estimate == pytest.approx(90, abs=6)
    assert result["length"].estimate == pytest.approx(2)
    assert result["direction"].high < 0.5


def test_the_floor_is_the_angle_between_other_prompts():
    result = found(drawn(0.4), drawn(0.4))
    assert result["angle"].estimate == pytest.approx(0, abs=1e-4)
    assert 30 < result["floor"].estimate < 80
    assert result["agreement_gained"].estimate == pytest.approx(0)


def test_less_noise_is_seen():
    result = found(drawn(0.1), drawn(0.6))
    assert result["agreement_gained"].low > 0
    assert "less noise" in result["agreement_gained"].sentence


def test_stacks_without_gradient_have_no_angle():
    result = found(np.zeros((PROMPTS, LENGTH)), drawn(0.1))
    assert {*result} == {"batches"}
    said = "0 of 15 batches have a gradient, 15 under the baseline: too few to compare."
    assert result["batches"].sentence == said
    assert found(drawn(0.1), np.zeros((PROMPTS, LENGTH)))["batches"].baseline == 0


def test_the_opposite_way_is_called_so():
    baseline = drawn(0.05)
    result = found(-baseline, baseline)
    assert result["angle"].estimate == pytest.approx(180)
    assert result["direction"].estimate == pytest.approx(-1)
    assert result["direction"].low >= -1
    assert result["direction"].sentence == "On average it points the opposite way."
