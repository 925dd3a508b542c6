"""An engine of one's own: one class, and the trainer says what it cannot."""

import math
from dataclasses import replace

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.dense.optimal_token_baseline import OptimalTokenBaseline
from callbacks.episode.grpo import GRPO
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.training.credit_gradients import compute_credit_gradients
from rlcredit.training.module import PolicyModule
from tests.training_runs import assert_like_adapter


class Elsewhere(Engine):
    """Draw as the embedded engine does, and be a tenth of a nat too sure of every token."""

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        samples = InProcessEngine().sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step)
        return replace(samples, logprobs=samples.logprobs + 0.1, entropy=None, sum_pi_squared=None)


def test_what_an_engine_cannot_tell_the_trainer_fills_in_and_says_how_far_it_was_off(fit):
    stack = [OptimalTokenBaseline()]  # which reads the sum of squares
    own = fit(engine=Elsewhere(), sampler_tolerance=0.2, mismatch_cap=None, stack=stack)
    embedded = fit(stack=[OptimalTokenBaseline()])
    for step, expected in zip(own.history, embedded.history, strict=True):
        assert step["train/mismatch_kl"] == pytest.approx(0.1, abs=1e-4)
        assert step["train/mismatch_max"] == pytest.approx(0.1, abs=1e-3)
        assert 0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001
        assert step["train/entropy"] == pytest.approx(expected["train/entropy"], abs=1e-4)
        assert "train/mismatch_kl" not in expected
    assert_like_adapter(own.adapter, embedded.adapter)


def test_an_engine_that_is_further_off_than_rounding_stops_the_run(fit):
    with pytest.raises(
        PolicyMismatch, match=r"Step 0: the engine's log-probabilities are 0.1 nats away .* and 0.01 is"
    ):
        fit(engine=Elsewhere())


def test_what_difference_remains_is_corrected(fit):
    corrected = fit(steps=1, engine=Elsewhere(), sampler_tolerance=0.2)
    plain = fit(steps=1, engine=Elsewhere(), sampler_tolerance=0.2, mismatch_cap=None)
    # Every token is a tenth of a nat less probable than the engine said: the gradient shrinks by exp(-0.1).
    norms = [run.history[0]["train/gradient_norm"] for run in (corrected, plain)]
    assert norms[0] / norms[1] == pytest.approx(math.exp(-0.1), rel=1e-4)


def test_importance_weights_are_truncated_above_and_leave_other_rollouts_alone(rollout):
    module, credit = PolicyModule(mismatch_cap=2.0), torch.ones(rollout.mask.shape)
    assert module.update_loss.correct_engine_mismatch(rollout, credit) is credit
    rollout.old_logprobs = torch.full(rollout.mask.shape, math.log(0.6))
    rollout.engine_logprobs = torch.full(rollout.mask.shape, math.log(0.2))
    assert_close(module.update_loss.correct_engine_mismatch(rollout, credit), 2 * credit)
    rollout.engine_logprobs = torch.full(rollout.mask.shape, math.log(0.8))
    assert_close(module.update_loss.correct_engine_mismatch(rollout, -credit), -0.75 * credit)
    assert PolicyModule(mismatch_cap=None).update_loss.correct_engine_mismatch(rollout, credit) is credit


class Norm(Callback):
    """What probes take the length of the gradient to be."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        (found,) = compute_credit_gradients(trainer, pl_module, batch, [batch.credit])
        self.length = math.sqrt(sum(part.double().square().sum().item() for part in found.values()))


def test_probes_measure_the_gradient_that_is_corrected(fit):
    norm = Norm()
    run = fit(steps=1, engine=Elsewhere(), sampler_tolerance=0.2, stack=[GRPO(), norm])
    assert norm.length == pytest.approx(run.history[0]["train/gradient_norm"], rel=1e-5)


class TruthRecorder(Callback):
    """Keep the true credit that an oracle has found."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.truth = batch.truth


def test_an_oracle_continues_in_this_process_what_another_engine_has_drawn(fit):
    def ask(engine):
        seen = TruthRecorder()
        fit(steps=1, engine=engine, sampler_tolerance=0.2, stack=[GRPO(), CreditOracle(every_n_steps=1), seen])
        return seen.truth

    elsewhere, embedded = ask(Elsewhere()), ask(None)
    assert embedded.credit.abs().max() > 0.1
    assert_close(elsewhere.credit, embedded.credit)
