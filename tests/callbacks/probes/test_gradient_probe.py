"""The turn of the update by what follows in the list, measured in short runs."""

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.probes.gradient_probe import GradientProbe, split_gradient
from callbacks.signals.entropy import Entropy
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.operator import CreditOperator


class Scale(CreditOperator, reads="advantages", writes="advantages"):
    """Multiply all credit by one number."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def assign(self, rollout):
        rollout.advantages = self.factor * rollout.advantages
        return {}


def test_what_follows_a_probe_is_measured_and_what_precedes_it_is_not(fit):
    nothing, turned, scaled = GradientProbe(1), GradientProbe(1), GradientProbe(1)
    fit(steps=2, stack=[GRPO(), Scale(-1.0), turned, Scale(-3.0), scaled, GTPO(beta=0.01), nothing])
    last = {name: probe.last for name, probe in (("nothing", nothing), ("turned", turned), ("scaled", scaled))}
    assert last["nothing"]["raw_cosine"] == pytest.approx(1, abs=1e-6)
    assert last["turned"]["raw_cosine"] < -0.9
    assert 0.9 < last["scaled"]["raw_cosine"] < 1 - 1e-6
    assert last["scaled"]["raw_norm_ratio"] == pytest.approx(1, abs=0.1)
    assert last["turned"]["raw_norm_ratio"] == pytest.approx(1 / 3, abs=0.05)
    assert {"layer_0_raw_cosine", "lora_A_preconditioned_cosine", "lora_B_change_cosine"} <= set(last["scaled"])


def test_a_mask_selects_and_a_factor_per_completion_rescales(fit):
    masked, rescaled = GradientProbe(1), GradientProbe(1)
    fit(steps=1, stack=[GRPO(), masked, Entropy(), EntropyMask(rho=0.2)])
    fit(steps=1, stack=[GRPO(), rescaled, MaxRLFactor()], prompts=4)
    assert masked.last["selection_degrees"] > 2  # few degrees: tokens without entropy have hardly any gradient
    assert rescaled.last["selection_degrees"] == pytest.approx(0, abs=0.1)
    assert rescaled.last["rescaling_degrees"] == pytest.approx(rescaled.last["raw_degrees"], abs=0.1)
    assert rescaled.last["raw_degrees"] > 1


class MaxRLFactor(CreditOperator, reads="advantages correct", writes="advantages"):
    """What MaxRL does to GRPO: one factor per group."""

    def assign(self, rollout):
        mean = rollout.correct.view(-1, rollout.group_size).mean(-1).repeat_interleave(rollout.group_size)
        rollout.advantages = rollout.advantages / (mean[:, None] + 1e-6)
        return {}


def test_a_probe_that_never_measures_is_refused():
    with pytest.raises(ValueError, match="every_n_steps >= 1"):
        GradientProbe(0)


def test_gradients_are_cut_by_layer_and_matrix():
    names = ["m.layers.0.q.lora_A.default.weight", "m.layers.0.q.lora_B.default.weight", "m.layers.1.q.lora_A.x.w"]
    cut = split_gradient({name: torch.ones(1) for name in names})
    assert {part: list(vector) for part, vector in cut.items()} == {
        "layer_0": names[:2],
        "layer_1": names[2:],
        "lora_A": [names[0], names[2]],
        "lora_B": names[1:2],
    }
