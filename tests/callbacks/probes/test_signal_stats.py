import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.signal_histogram import SignalHistogram
from callbacks.probes.signal_stats import SignalStats
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.predictive_variance import PredictiveVariance
from callbacks.signals.sepa import SEPA
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import check_stack
from tests.conftest import make_rollout


def test_the_variances_of_a_batch_computed_by_hand(rollout):
    rollout.mask = torch.zeros_like(rollout.mask)
    rollout.mask[:2, :4] = True
    rollout.plan_mask = rollout.mask & (torch.arange(6) == 0)
    rollout.signal = torch.zeros_like(rollout.signal)
    rollout.signal[0, :4] = torch.tensor([5.0, 1.0, 2.0, 3.0])
    rollout.signal[1, :4] = torch.tensor([9.0, 6.0, 6.0, 6.0])
    metrics = {name: float(value) for name, value in SignalStats().assign(rollout).items()}
    assert metrics == pytest.approx(
        {
            "plan_mean": 7.0,
            "plan_variance_within": 0.0,
            "plan_variance_between": 4.0,
            "execution_mean": 4.0,
            "execution_variance_within": 1 / 3,  # 2/3 in the first completion, 0 in the second
            "execution_variance_between": 4.0,  # means 2 and 6
        }
    )


def test_within_and_between_add_up_to_the_whole(rollout):
    rollout.plan_mask = rollout.mask & (torch.arange(6) < 2)
    metrics = SignalStats().assign(rollout)
    execution = rollout.signal[rollout.mask & ~rollout.plan_mask]
    assert_close(
        metrics["execution_variance_within"] + metrics["execution_variance_between"], execution.var(correction=0)
    )


@pytest.fixture
def pooling():
    """SEPA at 0.9 between two looks."""
    looks = [SignalStats(), SignalHistogram(), SEPA(), SignalStats(), SignalHistogram()]
    return [GRPO(), StrategicGrams(), ConstantLambda(0.9), *looks, GTPO()]


def test_above_and_below_sepa_the_run_shows_what_pooling_does(fit, pooling, tmp_path):
    step = fit(steps=1, stack=pooling).history[0]
    before, after = (f"credit/{label}/" for label in ("SignalStats", "SignalStats_2"))
    assert step[after + "execution_variance_within"] == pytest.approx(
        0.01 * step[before + "execution_variance_within"], rel=1e-4
    )
    assert step[after + "execution_variance_between"] == pytest.approx(step[before + "execution_variance_between"])
    for name in ("plan_mean", "plan_variance_within", "plan_variance_between"):
        assert step[after + name] == step[before + name]
    assert [path.name for path in (tmp_path / "signal").iterdir()] == ["step_000000.png"]


def test_looking_changes_nothing(fit, pooling):
    blind = [operator for operator in pooling if operator.writes]
    seen, unseen = fit(steps=3, stack=pooling), fit(steps=3, stack=blind)
    for name, weight in seen.adapter.items():
        assert torch.equal(weight, unseen.adapter[name])


def test_plan_and_execution_statistics_need_a_planner():
    with pytest.raises(StackError, match=r"SignalStats reads `plan_mask`.*Put StrategicGrams above SignalStats"):
        check_stack([GRPO(), SignalStats()])
    check_stack([GRPO(), StrategicGrams(), SignalStats()])


def test_metric_names_do_not_call_another_signal_surprisal():
    rollout = make_rollout()
    PredictiveVariance().assign(rollout)
    assert not any("surprisal" in name or "entropy" in name for name in SignalStats().assign(rollout))
