import pytest
import torch
from torch.testing import assert_close

from callbacks.signals.sepa_amplification import SEPAAmplification, sepa_amplified_signal
from tests.callbacks.worked_example import MASK, PLAN, SIGNAL, near


def test_amplification_pushes_away_from_the_mean_that_pooling_pulls_to():
    raw = sepa_amplified_signal(SIGNAL, PLAN, MASK, 0.94)
    near(raw[:, :5], 1.94 * 0.2 - 0.94 * 0.2875, 1.94 * 0.3 - 0.94 * 0.2875, 1.8, 1.94 * 0.1 - 0.94 * 0.2875, 1.47575)
    assert_close(sepa_amplified_signal(SIGNAL, PLAN, MASK, 0.94, clamped=True), raw.clamp(min=0))
    assert raw.min() < 0


def test_a_completion_of_planning_tokens_only_is_not_amplified():
    signal, mask = torch.tensor([[0.5, 2.0, 9.0]]), torch.tensor([[True, True, False]])
    assert torch.equal(sepa_amplified_signal(signal, mask, mask, 1.0)[mask], signal[mask])


def test_negative_signals_are_counted(rollout):
    rollout.plan_mask = rollout.mask & (torch.arange(6) < 2)
    rollout.sepa_lambda = 1.0
    rollout.signal = SIGNAL[:, :6].expand(8, 6)
    raw = SEPAAmplification().assign(rollout)
    expected = (sepa_amplified_signal(SIGNAL[:, :6].expand(8, 6), rollout.plan_mask, rollout.mask, 1.0) < 0)[
        rollout.mask
    ]
    assert raw["negative_fraction"].item() == pytest.approx(expected.float().mean().item())
    assert expected.any()


def test_empty_execution_set_is_not_amplified():
    assert torch.equal(sepa_amplified_signal(SIGNAL, torch.ones_like(PLAN), MASK, 1.0, clamped=True), SIGNAL)
