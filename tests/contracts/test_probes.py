"""A run with any probe is the run without it."""

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.probes.credit_heatmap import CreditHeatmap
from callbacks.probes.credit_oracle import CreditOracle
from callbacks.probes.decision_pivots import DecisionPivots
from callbacks.probes.entropy_collapse import EntropyCollapse
from callbacks.probes.gradient_probe import GradientProbe
from callbacks.probes.noise_floor import NoiseFloor
from callbacks.probes.polarity_misalignment import PolarityMisalignment
from callbacks.probes.quadrant_stats import QuadrantStats
from callbacks.probes.signal_histogram import SignalHistogram
from callbacks.probes.signal_stats import SignalStats
from callbacks.probes.top_tokens import TopTokens
from callbacks.probes.zero_variance import ZeroVariance
from callbacks.signals.process_signal import ProcessSignal
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.training.periodic_measurement import PeriodicMeasurement
from tests.slow_cases import mark_others_slow

PROBES = {
    "gradient": lambda: [GradientProbe(every_n_steps=1)],
    "counterfactual": lambda: [CounterfactualProbe({"maxrl": [MaxRL()], "gtpo": [GRPO(), GTPO()]}, every_n_steps=1)],
    "oracle": lambda: [CreditOracle(every_n_steps=2, completions=2, samples=4)],
    "noise": lambda: [NoiseFloor(every_n_steps=1, draws=10)],
    "others": lambda: [
        *(StrategicGrams(), ProcessSignal(beta=1.0)),
        *(DecisionPivots(), EntropyCollapse(), PolarityMisalignment(), QuadrantStats(), SignalStats(), ZeroVariance()),
        *(CreditHeatmap(every_n_steps=1), SignalHistogram(every_n_steps=1), TopTokens(every_n_steps=1)),
    ],
}


def test_every_probe_is_compared_with_a_run_without_it():
    compared = {type(probe) for made in PROBES.values() for probe in made() if not probe.writes}
    assert compared == {probe for probe in find_operator_classes() if not probe.writes}


SEVERAL_UPDATES = {"steps": 4, "updates_per_rollout": 2, "minibatches": 2, "prompts": 4}


@pytest.mark.parametrize("how", mark_others_slow([{"steps": 3}, SEVERAL_UPDATES], fast=0))
def test_a_run_with_a_probe_is_the_run_without_it_bit_for_bit(fit, how):
    bare = fit(**how)
    for made in PROBES.values():
        probes = made()
        probed = fit(stack=[GRPO(), *probes], **how)
        assert all(probe.last for probe in probes if isinstance(probe, PeriodicMeasurement))
        assert probed.losses == bare.losses
        assert all(torch.equal(bare.adapter[key], weight) for key, weight in probed.adapter.items())
