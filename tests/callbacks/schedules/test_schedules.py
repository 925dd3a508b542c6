import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.linear_lambda import LinearLambda, linear_ramp
from callbacks.schedules.variance_lambda import VarianceLambda, variance_lambda
from tests.conftest import make_rollout

GOOD, BAD = [1.0] * 4 + [0.0] * 4, [0.0] * 8


def lambdas(stack, steps, rewards=lambda step: GOOD):
    """What a stack of schedules makes of lambda, step by step."""
    seen = []
    for step in steps:
        rollout = make_rollout(rewards(step))
        rollout.step = step
        for operator in stack:
            operator.assign(rollout)
        seen.append(rollout.sepa_lambda)
    return seen


@pytest.mark.parametrize(
    ("steps", "delay", "step", "expected"),
    [
        (100, 5, 99, 0.94),  # (99 - 5) / 100, the most a run of 100 steps sees
        (100, 5, 0, 0.0),
        (100, 5, 5, 0.0),
        (100, 5, 6, 0.01),
        (100, 5, 19, 0.14),
        (100, 5, 50, 0.45),
        (100, 5, 104, 0.99),
        (100, 5, 105, 1.0),
        (100, 10, 15, 0.05),
        (100, 10, 19, 0.09),
        (500, 50, 99, 0.098),
        (500, 50, 499, 0.898),
        (137, 2, 136, 0.978),
        (30, 2, 29, 0.90),
    ],
)
def test_lambda_of_the_published_schedules(steps, delay, step, expected):
    assert linear_ramp(step, delay, steps) == pytest.approx(expected, abs=5e-4)
    assert lambdas([LinearLambda(delay, steps)], [step]) == [linear_ramp(step, delay, steps)]


@given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 500))
def test_a_ramp_never_falls_and_stays_in_range(step, delay, steps):
    assert 0 <= linear_ramp(step, delay, steps) <= linear_ramp(step + 1, delay, steps) <= 1


def test_a_good_batch_opens_the_gate_for_the_steps_after_it_and_for_good():
    verdicts = {0: BAD, 1: GOOD, 2: BAD, 3: BAD}
    gate = CorrectnessGate(threshold=0.5)
    assert lambdas([ConstantLambda(0.8), gate], range(4), verdicts.get) == [0.0, 0.0, 0.8, 0.8]
    assert gate.state_dict() == {"opened_at": 1}


def test_a_gate_at_zero_is_open_from_the_start():
    assert lambdas([ConstantLambda(), CorrectnessGate(threshold=0.0)], range(2), lambda _: BAD) == [1.0, 1.0]


def test_the_ramp_above_runs_on_behind_a_closed_gate_and_a_ramp_of_its_own_starts_at_the_opening():
    late = {step: GOOD if step >= 60 else BAD for step in range(100)}
    jump = lambdas([LinearLambda(5, 100), CorrectnessGate()], range(100), late.get)
    assert jump[60] == 0.0
    assert jump[61] == pytest.approx(0.56)
    climb = lambdas([ConstantLambda(), CorrectnessGate(ramp=20)], range(100), late.get)
    assert climb[60] == 0.0
    assert climb[61:64] == pytest.approx([0.05, 0.10, 0.15])
    assert climb[80] == climb[99] == 1.0


def test_lambda_rises_below_the_threshold_share_of_the_baseline():
    values = [variance_lambda(v, 2.0, 0.2) for v in (2.0, 0.4, 0.3, 0.2, 0.0)]
    assert values == pytest.approx([0.0, 0.0, 0.25, 0.5, 1.0])
    assert variance_lambda(0.0, 0.0, 0.2) == 1.0  # no variance, and none to begin with


def test_execution_variance_is_pooled_over_the_batch_and_smoothed_once_per_step():
    schedule = VarianceLambda(threshold=0.5, decay=0.5, warmup=2, steps=None)
    variances = []
    for scale in (1.0, 3.0, 0.5, 0.0):
        rollout = make_rollout()
        rollout.signal = scale * rollout.signal
        rollout.plan_mask = rollout.mask & (torch.arange(6) == 0)
        metrics = schedule.assign(rollout)
        execution = rollout.signal[rollout.mask & ~rollout.plan_mask]
        assert metrics["variance"] == pytest.approx(execution.double().var(correction=0).item())
        variances.append(metrics["variance"])
    v = variances[0]  # then 9 v, v / 4, 0
    assert schedule.baseline == pytest.approx((v + 9 * v) / 2)
    assert schedule.ema == pytest.approx(((5 * v + v / 4) / 2) / 2)
    # 1.3125 v over a baseline of 5 v, of which half is the threshold
    assert rollout.sepa_lambda == pytest.approx(1 - 1.3125 / 5 / 0.5)


def test_nothing_before_the_warm_up_and_never_below_the_floor():
    flat = VarianceLambda(decay=0.0, warmup=3, delay=0, steps=10)
    assert lambdas([flat], range(6)) == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantLambda(1.5), r"value in \[0, 1\], got 1.5"),
        (lambda: LinearLambda(steps=0), "For a lambda of one from the start use ConstantLambda"),
        (lambda: LinearLambda(delay=-1), "delay >= 0"),
        (lambda: CorrectnessGate(threshold=2.0), "threshold <= 1 and ramp >= 0, got 2.0 and 0"),
        (lambda: VarianceLambda(decay=1.0), "0 <= decay < 1"),
        (lambda: VarianceLambda(threshold=0.0), "threshold > 0"),
    ],
)
def test_what_is_no_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
