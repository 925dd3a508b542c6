import copy
import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.signals.sepa import SEPA
from callbacks.tokens.delight import Delight, delight_gate
from rlcredit.credit.contract import StackWarning
from rlcredit.formulas.gates import AdaptiveEta
from tests.callbacks.worked_example import HALF, MASK, SIGNAL, near, worked
from tests.conftest import make_rollout


def test_the_worked_example():
    near(
        worked(0.5, Delight())[0],
        *(0.26249, 0.26871, 0.35547, 0.25625, 0.30532, 0.26249, 0.37039, 0.26871, 0.25625, 0.26249),
    )
    scaled = Delight(eta=0.5, normalization="scale")
    near(
        worked(0.5, scaled)[0],
        *(0.28535, 0.30258, 0.46419, 0.26776, 0.39131, 0.28535, 0.47604, 0.30258, 0.26776, 0.28535),
    )
    near(
        worked(-0.5, scaled)[0],
        *(-0.21465, -0.19742, -0.03581, -0.23224, -0.10869, -0.21465, -0.02396, -0.19742, -0.23224, -0.21465),
    )
    near(
        worked(0.5, Delight(eta=0.5, normalization="scale", blend=0.5))[0],
        *(0.39267, 0.40129, 0.48209, 0.38388, 0.44566, 0.39267, 0.48802, 0.40129, 0.38388, 0.39267),
    )


def test_the_gate_opens_for_right_answers_and_closes_for_wrong_ones():
    _, metrics = worked(0.5, Delight())
    assert metrics["gate_positive_mean"] > 0.5
    assert metrics["gate_negative_mean"] == 0.5  # there are none
    _, metrics = worked(-0.5, Delight())
    assert metrics["gate_negative_mean"] < 0.5


def test_centring_turns_tokens_below_the_mean_against_their_answer():
    below = SIGNAL.mean() > SIGNAL
    assert (delight_gate(HALF, SIGNAL, MASK, 0.5, "zscore")[below] < 0.5).all()
    assert (delight_gate(HALF, SIGNAL, MASK, 0.5, "scale") >= 0.5).all()


def test_the_robust_scale_ignores_an_outlier():
    outlier = SIGNAL.clone()
    outlier[0, 6] = 200.0
    # Median 0.25; deviations from it, sorted: .05 .05 .05 .05 .05 .15 .15 .65 1.55 1.85. Their median is 0.1.
    scale = 1.4826 * 0.1
    for signal in (SIGNAL, outlier):
        gate = delight_gate(HALF, signal, MASK, 1.0, "mad")
        assert_close(gate[0, :6], torch.sigmoid(0.5 * signal[0, :6] / scale))


def test_where_most_values_are_equal_the_robust_scale_falls_back_and_a_flat_signal_stays():
    mostly_zero = torch.tensor([[0.0, 0.0, 0.0, 2.0]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    advantages = torch.ones(1, 4)
    robust, plain = (delight_gate(advantages, mostly_zero, mask, 1.0, how) for how in ("mad", "scale"))
    assert_close(robust, plain)
    for length in (4, 7, 333):  # the mean of seven times 0.7 is not 0.7 in single precision
        flat, mask = torch.full((1, length), 0.7), torch.ones(1, length, dtype=torch.bool)
        for how in ("scale", "mad", "zscore"):
            assert_close(delight_gate(torch.ones(1, length), flat, mask, 1.0, how), torch.sigmoid(flat))


def test_a_fully_pooled_completion_has_no_scale_to_saturate_the_gate_with():
    rollout = make_rollout(width=50)
    rollout.sepa_lambda = 1.0
    GRPO().assign(rollout)
    SEPA().assign(rollout)
    with pytest.warns(StackWarning, match="selects no tokens"):
        assert Delight(eta=0.5, normalization="scale").assign(rollout)["saturated_fraction"] == 0


def test_a_saturated_gate_is_reported_and_one_that_selects_nothing_is_called_out():
    with pytest.warns(StackWarning, match="selects no tokens: all of a completion weigh alike"):
        _, metrics = worked(0.5, Delight(eta=1e-3))
    assert metrics["saturated_fraction"] == 1
    assert metrics["weight_deviation_within"] < 1e-3


def test_an_adaptive_eta_leaves_its_share_undecided():
    for share in (0.2, 0.5, 0.8):
        _, metrics = worked(0.5, Delight(eta=AdaptiveEta(share=share), normalization="scale"))
        assert metrics["neutral_fraction"].item() == pytest.approx(share)
    _, metrics = worked(0.5, Delight(eta=AdaptiveEta(share=0.5)))
    # The fifth smallest |A s| of ten is 0.5 * 0.2.
    assert metrics["eta"] == pytest.approx(0.1 / math.log(1.5))


def test_an_adaptive_eta_is_smoothed_and_clamped():
    operator = Delight(eta=AdaptiveEta(decay=0.75))
    rollout = make_rollout([1.0], group_size=1)
    etas = []
    for size in (4.0, 400.0, 1e-6):
        rollout.signal, rollout.advantages = torch.full((1, 6), size), torch.ones(1, 6)
        with pytest.warns(StackWarning):
            etas.append(operator.assign(rollout)["eta"])
    # A batch's eta is at most 5 and at least 0.05.
    assert etas == pytest.approx([5.0, 5.0, 0.75 * 5 + 0.25 * 0.05])


def test_batches_without_any_advantage_leave_an_adaptive_eta_where_it_is():
    operator = Delight(eta=AdaptiveEta(decay=0.9))
    metrics = operator.assign(make_rollout([0.0] * 8))
    assert metrics["eta"] == 5.0
    assert metrics["gate_mean"] == 0.5
    found = operator.assign(make_rollout([0.3] * 8))["eta"]
    assert found < 5.0
    assert operator.assign(make_rollout([0.0] * 8))["eta"] == found


def test_lambda_blends_where_the_schedule_is_asked(rollout):
    rollout.sepa_lambda = 0.25
    assert Delight(blend="lambda").assign(rollout)["blend"] == 0.25
    assert "sepa_lambda" in Delight(blend="lambda").reads
    assert "sepa_lambda" not in Delight().reads


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Delight(eta=0.0), "eta > 0"),
        (lambda: Delight(blend=1.5), r"blend in \[0, 1\]"),
        (lambda: AdaptiveEta(share=1.0), "share and decay"),
        (lambda: Delight(eta=float("nan")), "eta > 0"),
        (lambda: delight_gate(HALF, SIGNAL, MASK, 1.0, "z-score"), "one of none, zscore, scale, mad, got 'z-score'"),
        (lambda: AdaptiveEta(low=2.0, high=1.0), "low <= high"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_extra_metrics_are_of_the_whole_batch_and_have_the_same_names_whatever_it_holds():
    names = []
    for rewards in ([0.0] * 4 + [1.0] * 4, [1.0, 0.0] * 4):
        rollout = make_rollout(rewards)
        GRPO().assign(rollout)
        names.append(list(Delight(eta=0.1).assign(rollout)))
    assert names[0] == names[1]


def test_adaptive_eta_remembers_every_step_and_survives_a_checkpoint():
    first, second, fresh = (Delight(eta=AdaptiveEta(decay=0.5)) for _ in range(3))
    for seed in range(2):
        first.assign(make_rollout(seed=seed))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    etas = [operator.assign(make_rollout(seed=2))["eta"] for operator in (first, second, fresh)]
    assert etas[0] == etas[1] != etas[2]
