"""Gradients of several stacks on one rollout."""

import argparse

import numpy as np
import pytest
from numpy.testing import assert_allclose

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from studies.measured_credit import measure_noise


class Doubled(GRPO):
    """Twice the credit: another length, the same direction."""

    def assign(self, rollout):
        metrics = super().assign(rollout)
        rollout.advantages = 2 * rollout.advantages
        return metrics


@pytest.fixture
def found(monkeypatch):
    stacks = {"GRPO": lambda: [GRPO()], "doubled": lambda: [Doubled()], "MaxRL": lambda: [MaxRL()]}
    monkeypatch.setattr(measure_noise, "STACKS", stacks)

    def of(**how):
        args = {"policy": "tiny", "terms": (3, 5), "max_tokens": 64, "prompts": 7, "completions": 4, "batch": 2}
        return measure_noise.measure_batch_gradients(list(stacks), argparse.Namespace(**args, seed=0, threads=1, **how))

    return of


def test_every_stack_is_measured_on_the_same_completions(found):
    vectors = found(config=[])
    assert {len(each) for each in vectors.values()} == {3}  # the seventh prompt fills no batch
    assert_allclose(vectors["doubled"], 2 * vectors["GRPO"], rtol=1e-4, atol=1e-7)
    _, more, direction = measure_noise.compare_with_grpo(vectors["doubled"], vectors["GRPO"])
    assert_allclose((more[0], direction[0]), (0, 1), atol=1e-5)
    assert np.abs(vectors["MaxRL"] - vectors["GRPO"]).max() > 1e-4


@pytest.mark.slow
def test_a_runs_configuration_says_the_same_as_arguments(found, tmp_path):
    more = tmp_path / "more.yaml"
    more.write_text("model: {sampling: {max_tokens: 64}}\n")
    by_file, by_arguments = found(config=["configs/tiny.yaml", str(more)]), found(config=[])
    assert by_file.keys() == by_arguments.keys()
    assert_allclose(by_file["GRPO"], by_arguments["GRPO"], rtol=1e-3, atol=1e-6)
