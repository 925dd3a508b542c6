"""Steps that are passed over change nothing, are counted, and stop the run when they come in a row."""

from functools import partial

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins import MixedPrecision

from callbacks.episode.grpo import GRPO
from rlcredit.base.exit_status import NotFinite
from rlcredit.training.nan_and_mismatch import trainable_weights

DECAYED = partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.1)
HALVED = partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.5)


class Steps(Callback):
    """Spoil or drop the gradients of some steps; keep weights, moments, rates and metrics after each."""

    def __init__(self, spoiled=(), dropped=()):
        self.spoiled, self.dropped = spoiled, dropped
        self.weights, self.moments, self.rates, self.prompts, self.skipped = [], [], [], [], []

    def on_after_backward(self, trainer, module):
        for weight in trainable_weights(module).values():
            if trainer.global_step in self.spoiled:
                weight.grad[0, 0] = torch.nan

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if trainer.global_step in self.dropped:
            for weight in trainable_weights(module).values():
                weight.grad = None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.weights.append([weight.detach().clone() for weight in trainable_weights(module).values()])
        states = trainer.optimizers[0].state.values()
        self.moments.append([value.clone() for state in states for value in state.values()])
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])
        self.prompts.append([number for number, _ in batch.sources])
        self.skipped.append(float(trainer.callback_metrics.get("train/skipped", -1.0)))


def equal(one, two):
    return len(one) == len(two) and all(torch.equal(a, b) for a, b in zip(one, two))


def test_a_step_that_is_passed_over_changes_nothing_but_the_count(fit):
    steps = Steps(spoiled=(1,))
    fit(steps=4, stack=[GRPO(), steps], optimizer=DECAYED, scheduler=HALVED, skip_not_finite=2, gradient_clip_val=1.0)
    assert steps.skipped == [0, 1, 0, 0]
    assert equal(steps.weights[0], steps.weights[1])
    assert equal(steps.moments[0], steps.moments[1])
    assert not equal(steps.weights[1], steps.weights[2])
    assert steps.rates == [5e-4, 5e-4, 2.5e-4, 1.25e-4]


@pytest.mark.slow
def test_the_rest_of_the_run_is_that_of_one_without_this_update_bit_for_bit(fit):
    skipping, without = Steps(spoiled=(1,)), Steps(dropped=(1,))
    fit(steps=4, stack=[GRPO(), skipping], optimizer=DECAYED, skip_not_finite=2)
    fit(steps=4, stack=[GRPO(), without], optimizer=DECAYED)
    assert skipping.prompts == without.prompts
    for one, two in zip(skipping.weights + skipping.moments, without.weights + without.moments):
        assert equal(one, two)
    assert without.skipped == [-1] * 4  # a metric of those runs only that ask for it


def test_an_option_that_nothing_calls_upon_changes_no_bit(fit):
    on, off = Steps(), Steps()
    fit(steps=3, stack=[GRPO(), on], skip_not_finite=3)
    fit(steps=3, stack=[GRPO(), off])
    assert all(equal(one, two) for one, two in zip(on.weights, off.weights))


def test_two_in_a_row_stop_a_run_that_passes_over_fewer_than_two(fit, tmp_path):
    apart = Steps(spoiled=(0, 2, 4))
    fit(steps=6, stack=[GRPO(), apart], skip_not_finite=2)
    assert apart.skipped == [1, 0, 1, 0, 1, 0]
    with pytest.raises(
        NotFinite, match=r"Step 3: the backward pass gives .*\. Steps in a row that were not finite: 2\."
    ):
        fit(steps=6, stack=[GRPO(), Steps(spoiled=(0, 2, 3))], skip_not_finite=2)
    assert [path.name for path in (tmp_path / "postmortem").iterdir()] == ["step_000003.pt"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Checkpoint directory .* is not empty", "ignore:You're resuming from a checkpoint")
def test_the_count_in_a_row_survives_a_checkpoint(fit, tmp_path):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=2, filename="{step}")
    fit(steps=2, stack=[GRPO(), Steps(spoiled=(1,)), saved], skip_not_finite=2, enable_checkpointing=True)
    ckpt = tmp_path / "saved" / "step=2.ckpt"
    again = partial(fit, steps=4, skip_not_finite=2, enable_checkpointing=True, ckpt_path=ckpt)
    with pytest.raises(NotFinite, match="Step 2: "):
        again(stack=[GRPO(), Steps(spoiled=(2,)), saved])
    later = Steps(spoiled=(3,))
    again(stack=[GRPO(), later, saved])
    assert later.skipped == [0, 1]


class Scaled(MixedPrecision):
    """A scaler, and arithmetic that the CPU can do."""

    def autocast_context_manager(self):
        return torch.autocast("cpu", dtype=torch.bfloat16)


def test_a_scaler_of_half_precision_gradients_goes_on_skipping_by_itself(fit):
    steps, scaler = Steps(spoiled=(1,)), torch.amp.GradScaler("cpu", init_scale=8.0)
    fit(steps=3, stack=[GRPO(), steps], plugins=[Scaled("16-mixed", "cpu", scaler)])
    assert equal(steps.weights[0], steps.weights[1])
    assert not equal(steps.weights[1], steps.weights[2])
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize(("name", "value"), [("skip_not_finite", -1), ("sampler_tolerance", 0.0)])
def test_what_makes_no_sense_is_refused(fit, name, value):
    with pytest.raises(ValueError, match=f"model.{name}"):
        fit(**{name: value})
