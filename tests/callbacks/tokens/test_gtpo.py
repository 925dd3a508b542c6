import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.signals.sepa import sepa_pooled_signal
from callbacks.signals.sepa_amplification import sepa_amplified_signal
from callbacks.tokens.gtpo import GTPO, gtpo_weights
from rlcredit.formulas.masked import masked_mean
from tests.callbacks.worked_example import MASK, PLAN, SIGNAL, near
from tests.conftest import make_rollout


def test_numeric_type_is_float32_and_agrees_with_a_float64_reference():
    rollout = make_rollout()
    weights = gtpo_weights(sepa_pooled_signal(rollout.signal, rollout.plan_mask, rollout.mask, 0.5), rollout.mask, 0.1)
    assert weights.dtype == torch.float32
    for row in range(8):
        signal = rollout.signal[row][rollout.mask[row]].tolist()
        mean = math.fsum(signal) / len(signal)
        reference = [max(0.0, 1 + 0.1 * ((0.5 * mean + 0.5 * s) / mean - 1)) for s in signal]
        assert weights[row][rollout.mask[row]].tolist() == pytest.approx(reference, abs=1e-6)


def test_mean_uncertainty_of_zero_gives_equal_weights_and_is_counted():
    rollout = make_rollout()
    rollout.signal = rollout.signal.where(torch.arange(8)[:, None] > 0, 0)
    assert GTPO(beta=0.9).assign(rollout)["flat_completions"] == 1 / 8
    assert_close(rollout.advantages[0], rollout.rewards[0].expand(6))


def test_beta_of_zero_is_uniform():
    assert torch.equal(gtpo_weights(SIGNAL, MASK, 0.0), torch.ones_like(SIGNAL))


def test_normaliser_is_the_mean_over_all_tokens_of_the_completion_planning_included():
    weights = gtpo_weights(SIGNAL, MASK, 1.0)
    assert_close(weights, SIGNAL / SIGNAL.mean())
    assert SIGNAL.mean() != SIGNAL[~PLAN].mean()


def test_weight_mass_is_one_per_token_until_the_clamp_acts():
    transformed = [
        SIGNAL,
        *(f(SIGNAL, PLAN, MASK, 0.7) for f in (sepa_pooled_signal, sepa_amplified_signal)),
        sepa_amplified_signal(SIGNAL, PLAN, MASK, 0.7, True),
    ]
    assert [gtpo_weights(s, MASK, 0.1).mean().item() for s in transformed] == pytest.approx([1.0] * 4)
    assert gtpo_weights(SIGNAL, MASK, 2.0).mean().item() == pytest.approx(1.248, abs=5e-4)


def test_minimum_weight_is_far_from_zero_so_that_raw_amplification_masks_nothing():
    surprise = torch.tensor([[0.0] * 19 + [1.0]])
    nothing, mask = torch.zeros(1, 20, dtype=torch.bool), torch.ones(1, 20, dtype=torch.bool)
    assert gtpo_weights(surprise, mask, 0.1).min().item() == pytest.approx(0.9)
    # Raw amplification at 0.94 on execution tokens only: at least 1 - 0.1 * 1.94.
    assert gtpo_weights(sepa_amplified_signal(surprise, nothing, mask, 0.94), mask, 0.1).min().item() == pytest.approx(
        0.806
    )
    rollout = make_rollout()
    rollout.sepa_lambda = 0.94
    rollout.signal = sepa_amplified_signal(rollout.signal, rollout.plan_mask, rollout.mask, 0.94)
    metrics = GTPO().assign(rollout)
    assert metrics["zero_weight_fraction"] == 0
    assert metrics["weight_min"] > 0.8


def test_weight_spread_is_beta_times_the_coefficient_of_variation():
    rollout = make_rollout()
    spread = GTPO(beta=0.1).assign(rollout)["weight_deviation"].item()
    relative = [s / s.mean() for s in (rollout.signal[row][rollout.mask[row]] for row in range(8))]
    assert spread == pytest.approx(0.1 * torch.cat(relative).std(correction=0).item(), rel=1e-5)


COMPLETIONS = st.lists(st.floats(0.0, 8.0, width=32), min_size=2, max_size=12)


def test_weights_of_the_worked_example():
    near(
        gtpo_weights(SIGNAL, MASK, 0.1),
        *(0.93226, 0.94839, 1.19032, 0.91613, 1.04516, 0.93226, 1.23871, 0.94839, 0.91613, 0.93226),
    )
    near(
        gtpo_weights(SIGNAL, MASK, 1.0),
        *(0.32258, 0.48387, 2.90323, 0.16129, 1.45161, 0.32258, 3.38710, 0.48387, 0.16129, 0.32258),
    )


def test_above_beta_one_the_clamp_acts_and_credit_is_added():
    weights = gtpo_weights(SIGNAL, MASK, 2.0)
    near(weights, 0, 0, 4.80645, 0, 1.90323, 0, 5.77419, 0, 0, 0)
    assert weights.mean().item() == pytest.approx(1.248, abs=5e-4)


def test_pooling_changes_execution_weights_and_no_planning_weight():
    half, most, all_of_it = (
        gtpo_weights(sepa_pooled_signal(SIGNAL, PLAN, MASK, x), MASK, 0.1) for x in (0.5, 0.94, 1.0)
    )
    near(half, 0.93931, 0.94738, 1.19032, 0.93125, 0.99577, 0.93931, 1.23871, 0.94738, 0.93125, 0.93931)
    near(most, 0.94552, 0.94649, 1.19032, 0.94456, 0.95230, 0.94552, 1.23871, 0.94649, 0.94456, 0.94552)
    near(all_of_it, *(0.94637,) * 2, 1.19032, *(0.94637,) * 3, 1.23871, *(0.94637,) * 3)


def test_clamped_amplification_lowers_planning_weights():
    weights = gtpo_weights(sepa_amplified_signal(SIGNAL, PLAN, MASK, 0.94, clamped=True), MASK, 0.1)
    near(weights, 0.91854, 0.94908, 1.18335, 0.9, 1.13231, 0.91854, 1.23058, 0.94908, 0.9, 0.91854)


@settings(deadline=None, max_examples=100)
@given(COMPLETIONS, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.data())
def test_credit_is_conserved_through_pooling_and_raw_amplification(values, beta, sepa_lambda, data):
    signal = torch.tensor([values], dtype=torch.float64)
    plan = torch.tensor([data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))])
    mask = torch.ones_like(plan)
    for transformed in (signal, sepa_pooled_signal(signal, plan, mask, sepa_lambda)):
        weights = gtpo_weights(transformed, mask, beta)
        assert weights.mean().item() == pytest.approx(1.0, abs=1e-9)
        assert (weights >= 1 - beta - 1e-9).all()
    amplified = sepa_amplified_signal(signal, plan, mask, sepa_lambda)
    lowest = 1 - beta * (1 + sepa_lambda * masked_mean(signal, ~plan) / signal.mean()) if signal.any() else 1.0
    weights = gtpo_weights(amplified, mask, beta)
    assert (weights >= lowest - 1e-9).all()
    if lowest >= 0:  # the clamp cannot act
        assert weights.mean().item() == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(COMPLETIONS.filter(lambda values: sum(values) > 0.01), st.floats(0.1, 10.0))
def test_only_a_constant_factor_of_the_signal_cancels(values, factor):
    signal = torch.tensor([values], dtype=torch.float64)
    mask = torch.ones_like(signal, dtype=torch.bool)
    assert_close(gtpo_weights(signal * factor, mask, 0.3), gtpo_weights(signal, mask, 0.3))


def test_a_monotone_change_of_the_signal_does_not_cancel():
    ours, squared = gtpo_weights(SIGNAL, MASK, 0.1), gtpo_weights(SIGNAL**2, MASK, 0.1)
    assert (ours.argsort(stable=True) == squared.argsort(stable=True)).all()
    assert (ours - squared).abs().max() > 0.1


@settings(deadline=None, max_examples=50)
@given(COMPLETIONS, st.floats(-3.0, 3.0, width=32), st.floats(0.0, 5.0))
def test_no_advantage_changes_its_sign(values, advantage, beta):
    signal = torch.tensor([values])
    weighted = advantage * gtpo_weights(signal, torch.ones_like(signal, dtype=torch.bool), beta)
    assert (weighted * advantage >= 0).all()


def test_a_completion_without_uncertainty_keeps_its_credit(rollout):
    rollout.signal = torch.zeros_like(rollout.signal)
    before = rollout.advantages
    metrics = GTPO(beta=0.9).assign(rollout)
    assert_close(rollout.advantages, before * 1.0)
    assert metrics["flat_completions"] == 1
    # Certain but for one rounded log-probability: 127 zeros and 1.2e-7 nats are no uncertainty either.
    rounded = torch.zeros(1, 128)
    rounded[0, 5] = 1.2e-7
    assert torch.equal(gtpo_weights(rounded, torch.ones(1, 128) > 0, 0.1), torch.ones(1, 128))


def test_it_reports_how_far_weights_leave_one(rollout):
    rollout.signal, rollout.mask = SIGNAL.repeat(8, 1), MASK.repeat(8, 1)
    rollout.advantages = torch.ones(8, 10)
    metrics = {name: float(value) for name, value in GTPO(beta=0.1).assign(rollout).items()}
    assert metrics["weight_min"] == pytest.approx(0.91613, abs=1e-5)
    assert metrics["weight_max"] == pytest.approx(1.23871, abs=1e-5)
    assert metrics["weight_mean"] == pytest.approx(1.0)
    # beta times the coefficient of variation: 0.1 * 0.69971 / 0.62
    assert metrics["weight_deviation"] == pytest.approx(0.1 * SIGNAL.std(correction=0).item() / 0.62, rel=1e-5)
    assert metrics["zero_weight_fraction"] == metrics["flat_completions"] == 0


def test_a_negative_beta_is_refused():
    with pytest.raises(ValueError, match=r"beta >= 0, got -0.2. A negative beta would reward certainty"):
        GTPO(beta=-0.2)


def test_golden_values_of_gtpo_for_real_rewards():
    rollout = make_rollout([-2.0, 0.5], group_size=2, width=3)  # the mean is -0.75
    rollout.mask = torch.ones(2, 3, dtype=torch.bool)
    rollout.signal = torch.tensor([[0.1, 0.3, 0.8], [0.2, 0.2, 0.2]])
    GRPO().assign(rollout)
    GTPO(beta=0.5).assign(rollout)
    # The mean signal is 0.4: weights 1 + 0.5 (0.25 - 1), 1 + 0.5 (0.75 - 1) and 1 + 0.5 (2 - 1), times -1.25.
    # Again, the weights 0.625 + 0.875 + 1.5 add up to 3, so the credit adds up to 3 * -1.25 = -3.75.
    expected = torch.tensor([[-0.78125, -1.09375, -1.875], [1.25, 1.25, 1.25]])
    assert_close(rollout.advantages, expected)
    assert rollout.advantages[0].sum().item() == pytest.approx(-3.75)
