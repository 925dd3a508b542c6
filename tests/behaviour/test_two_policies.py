"""Sampler and trainer that are two policies."""

import pytest
import torch
from lightning.pytorch import Callback

from callbacks.episode.grpo import GRPO
from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.policy import model_loading
from rlcredit.policy.policy import Policy
from rlcredit.training.nan_and_mismatch import trainable_weights
from tests.rlcredit.policy.test_determinism import CONV1D, gpt2


class Late(Callback):
    """Move the adapter between sampling and update."""

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        with torch.no_grad():
            for name, weight in trainable_weights(module).items():
                if trainer.global_step == 1 and "lora_B" in name:
                    weight += 0.05


def test_weights_that_change_before_the_update_stop_the_run(fit, tmp_path):
    with pytest.raises(
        PolicyMismatch, match=r"Step 1: sampler and trainer are two policies\. .* weights changed"
    ) as ended:
        fit(steps=3, stack=[GRPO(), Late()])
    assert ended.value.status == 5
    assert str(tmp_path / "postmortem" / "step_000001.pt") in str(ended.value)
    fit(steps=3, stack=[GRPO(), Late()], sampler_tolerance=float("inf"))


@CONV1D
def test_dropout_in_training_only_stops_the_run(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(model_loading, "disable_config_dropout", lambda config: config)
    monkeypatch.setattr(model_loading, "prepare_base_model", lambda model, location: model)
    with pytest.raises(PolicyMismatch, match=r"Step 0: .* Likely causes: a dropout that the model applies in training"):
        fit(stack=[], policy=gpt2(tmp_path / "gpt2"))


def test_a_sampler_at_another_temperature_stops_the_run_in_any_precision(fit, monkeypatch):
    plain = InProcessEngine.decode

    def decode(self, policy, prompt_ids, noise, of, temperature, limits=None):
        return plain(self, policy, prompt_ids, noise, of, 2 * temperature, limits)

    monkeypatch.setattr(InProcessEngine, "decode", decode)
    with pytest.raises(PolicyMismatch, match=r"and 0\.2 is allowed"):
        fit(policy=Policy(dtype="bfloat16"))


def test_later_updates_of_a_rollout_may_have_moved(fit):
    run = fit(steps=4, lr=3e-2, updates_per_rollout=4)
    assert run.history[3]["train/kl_sampler"] > 0.01**2
