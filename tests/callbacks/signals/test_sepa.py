import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.signals.sepa import SEPA, sepa_pooled_signal
from callbacks.signals.sepa_amplification import sepa_amplified_signal
from rlcredit.formulas.masked import masked_mean, masked_var, variance_within_between
from tests.callbacks.worked_example import MASK, PLAN, SIGNAL, near

BATCHES = st.integers(0, 2**32 - 1)


def batch(seed):
    """Four completions with planning tokens, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    signal = 3 * torch.rand(4, 9, generator=generator, dtype=torch.float64)
    plan = torch.rand(4, 9, generator=generator) < 0.3
    mask = torch.arange(9) < torch.randint(1, 10, (4, 1), generator=generator)
    return signal, plan, mask


def test_sepa_pools_the_worked_example():
    near(
        sepa_pooled_signal(SIGNAL, PLAN, MASK, 0.5),
        0.24375,
        0.29375,
        1.8,
        0.19375,
        0.59375,
        0.24375,
        2.1,
        0.29375,
        0.19375,
        0.24375,
    )
    near(sepa_pooled_signal(SIGNAL, PLAN, MASK, 0.94)[:, :5], 0.28225, 0.28825, 1.8, 0.27625, 0.32425)
    pooled = sepa_pooled_signal(SIGNAL, PLAN, MASK, 1.0)
    near(pooled, *(0.2875,) * 2, 1.8, *(0.2875,) * 3, 2.1, *(0.2875,) * 3)  # token 5 goes from 0.9 to 0.2875


@settings(deadline=None, max_examples=100)
@given(BATCHES, st.floats(0.0, 1.0))
def test_inside_a_completion_variance_falls_to_its_square_and_nothing_else_moves(seed, sepa_lambda):
    signal, plan, mask = batch(seed)
    execution = mask & ~plan
    pooled, amplified = (
        transform(signal, plan, mask, sepa_lambda) for transform in (sepa_pooled_signal, sepa_amplified_signal)
    )
    for transformed, factor in ((pooled, 1 - sepa_lambda), (amplified, 1 + sepa_lambda)):
        assert_close(masked_mean(transformed, execution, dim=-1), masked_mean(signal, execution, dim=-1))
        assert_close(masked_var(transformed, execution, dim=-1), factor**2 * masked_var(signal, execution, dim=-1))
        within, between = variance_within_between(transformed, execution)
        was_within, was_between = variance_within_between(signal, execution)
        assert_close(within, factor**2 * was_within)
        assert_close(between, was_between)
        assert torch.equal(transformed[mask & plan], signal[mask & plan])


def test_a_completion_of_planning_tokens_only_is_left_as_it_is():
    signal, mask = torch.tensor([[0.5, 2.0, 9.0]]), torch.tensor([[True, True, False]])
    assert torch.equal(sepa_pooled_signal(signal, mask, mask, 1.0)[mask], signal[mask])


def test_pooled_tokens_are_counted(rollout):
    rollout.plan_mask = rollout.mask & (torch.arange(6) < 2)
    rollout.sepa_lambda = 1.0
    tokens = rollout.mask.sum().item()
    assert SEPA().assign(rollout)["execution_fraction"].item() == pytest.approx(1 - 16 / tokens)


def test_a_lambda_of_zero_leaves_the_signal_alone():
    huge = 100 * SIGNAL  # no hidden clip of large surprisals either
    assert torch.equal(sepa_pooled_signal(huge, PLAN, MASK, 0.0), huge)


def test_empty_execution_set_changes_nothing():
    assert torch.equal(sepa_pooled_signal(SIGNAL, torch.ones_like(PLAN), MASK, 1.0), SIGNAL)
