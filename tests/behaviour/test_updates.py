"""Several updates for one rollout."""

import functools
from functools import partial

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers.logger import DummyLogger
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO, grpo_advantages
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.sampling import Sampling
from rlcredit.losses import ClippedSurrogate, ImportanceSampling, KLPenalty
from rlcredit.tasks import ReasoningGym
from rlcredit.tasks.prompt_order import PromptOrder
from rlcredit.training.dynamic_sampling import DynamicSampling
from rlcredit.training.module import PolicyModule
from rlcredit.verification.rewards import verdict_mask, verdict_rewards
from rlcredit.verification.verifiers import Verdict
from tests.spy import RolloutSpy


class Heard(ImportanceSampling, needs="update"):
    """Keep what the loss is given."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def objective(self, logprobs, old_logprobs, advantages, mask, **facts):
        self.calls.append((facts["update"], old_logprobs, advantages))
        return super().objective(logprobs, old_logprobs, advantages, mask)


def test_one_update_per_rollout_is_the_textbook_loop_bit_for_bit(fit):
    ours = fit(steps=3, prompts=2)
    # The same training without Lightning, rollouts kept for one update, credit by the pure function.
    module = PolicyModule(sampling=Sampling(completions=8, max_tokens=48))
    module.configure_model()
    task = ours.module.trainer.datamodule
    adapter = [weight for weight in module.policy.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(adapter, lr=1e-3, weight_decay=0.0)
    order = PromptOrder(64, 2, seed=0, step=lambda: 0)
    for step in range(3):
        prompts = task._collate_prompts([(number, task.train_set[number]) for number in order.draw_numbers(step)])
        prompt_ids = module.policy.encode_questions(prompts.questions)
        samples = module.engine.sample(module.policy, prompt_ids, prompts.numbers, module.sampling, seed=0, step=step)
        tokens = module.policy.decode_pieces(samples.completion_ids, samples.mask)
        answered = [example for example in prompts.examples for _ in range(8)]
        right = verdict_mask(task.judge(["".join(pieces) for pieces in tokens], answered), Verdict.RIGHT)
        rollout = Rollout(
            step=step,
            group_size=8,
            prompt_ids=prompt_ids.repeat_interleave(8, 0),
            completion_ids=samples.completion_ids,
            mask=samples.mask,
            old_logprobs=samples.logprobs,
            entropy=samples.entropy,
            correct=verdict_rewards(right, torch.ones_like(right), 8),
            tokens=tokens,
        )
        rollout.advantages = grpo_advantages(rollout.rewards, 8)[:, None].expand(rollout.mask.shape)
        loss = module.loss(module(rollout).logprobs, rollout.old_logprobs, rollout.advantages, rollout.mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() == ours.losses[step]
    theirs = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
    assert all(torch.equal(theirs[name], weight) for name, weight in ours.adapter.items())


def test_a_rollout_is_kept_its_credit_assigned_once_and_its_ratios_leave_one(fit):
    spy = RolloutSpy()
    run = fit(steps=4, stack=[GRPO(), spy], prompts=4, lr=3e-3, updates_per_rollout=2)
    assert [rollout.step for rollout in spy.seen] == [0, 2]
    for first, second in (run.history[:2], run.history[2:]):
        assert 0.999 < first["train/ratio_min"] <= first["train/ratio_max"] < 1.001
        assert second["train/ratio_min"] < 0.99
        assert second["train/ratio_max"] > 1.01
        assert second["train/kl_sampler"] > 1e-5 > first["train/kl_sampler"]


def test_every_update_uses_the_next_prompts_of_the_rollout(fit):
    spy, loss = RolloutSpy(), Heard()
    fit(steps=8, stack=[GRPO(), spy], prompts=4, completions=4, loss=loss, updates_per_rollout=4, minibatches=2)
    assert [update for update, *_ in loss.calls] == [0, 1, 2, 3] * 2
    for place, rollout in enumerate(spy.seen):
        calls = loss.calls[4 * place : 4 * place + 4]
        for (_, old_logprobs, advantages), rows in zip(calls, [slice(0, 8), slice(8, 16)] * 2):
            assert torch.equal(old_logprobs, rollout.old_logprobs[rows])
            assert torch.equal(advantages, rollout.advantages[rows])


class Kept(DummyLogger):
    """Remember which metrics came at which step."""

    def __init__(self):
        super().__init__()
        self.steps = {}

    def log_metrics(self, metrics, step=None):
        self.steps.setdefault(step, {}).update(metrics)


def test_what_describes_a_rollout_stands_beside_each_of_its_updates(fit):
    logger = Kept()
    fit(steps=4, prompts=4, updates_per_rollout=2, logger=logger)
    of_rollout = ("train/entropy", "train/surprisal", "time/rollout")
    logged = [logger.steps[step] for step in sorted(logger.steps)]
    for first, second in (logged[:2], logged[2:]):
        assert all(first[name] == second[name] for name in of_rollout)
        assert all(first[name] != second[name] for name in ("train/loss", "train/ratio_max", "train/gradient_norm"))
    assert all(logged[0][name] != logged[2][name] for name in of_rollout)


class Save(Callback):
    """Write a checkpoint after a step."""

    def __init__(self, path, step):
        self.path, self.step = path, step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == self.step:
            trainer.save_checkpoint(self.path)


@functools.cache
def few_questions():
    return ReasoningGym("chain_sum", CHAIN_SUM, train_size=8, validation_size=16, prompts_per_step=2)


def trained(steps, *callbacks, ckpt_path=None):
    module = PolicyModule(
        sampling=Sampling(completions=4, max_tokens=48),
        optimizer=partial(torch.optim.AdamW, lr=3e-3, weight_decay=0.0),
        loss=ClippedSurrogate(),
        updates_per_rollout=2,
        minibatches=2,
    )
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(
        max_steps=steps,
        limit_val_batches=0,
        accelerator="cpu",
        enable_checkpointing=False,
        callbacks=[GRPO(), *callbacks],
        **quiet,
    )
    trainer.fit(module, few_questions(), ckpt_path=ckpt_path, weights_only=True)
    return {name: weight.detach() for name, weight in module.named_parameters() if weight.requires_grad}


@pytest.mark.filterwarnings("ignore:.*your dataloader is not resumable")  # its order is a function of the step
def test_a_run_goes_on_between_two_rollouts_and_says_why_it_cannot_inside_one(tmp_path):
    between, inside = str(tmp_path / "between.ckpt"), str(tmp_path / "inside.ckpt")
    whole = trained(6, Save(between, 4), Save(inside, 3))
    again = trained(6, ckpt_path=between)
    assert all(torch.equal(again[name], weight) for name, weight in whole.items())
    with pytest.raises(ValueError, match="written after step 3, inside a rollout of 2 updates"):
        trained(6, ckpt_path=inside)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"steps": 3}, "trainer.max_steps is 3 and ends inside a rollout"),
        ({"prompts": 3, "minibatches": 2}, "model.minibatches is 2, which cannot share 3 prompts"),
        ({"minibatches": 4}, "model.minibatches must divide model.updates_per_rollout"),
        ({"stack": [ModelCheckpoint()], "enable_checkpointing": True}, "every_n_train_steps is not set"),
        (
            {"stack": [ModelCheckpoint(every_n_train_steps=2, save_on_exception=True)], "enable_checkpointing": True},
            "and no other time",
        ),
        ({"stack": [], "completions": 1, "dynamic_sampling": DynamicSampling(2)}, "finds no group of one informative"),
        (
            {"stack": [ModelCheckpoint(every_n_train_steps=3)], "enable_checkpointing": True},
            "every_n_train_steps is 3; a checkpoint inside a rollout cannot be continued. Choose a multiple of",
        ),
    ],
)
def test_half_a_rollout_is_refused_with_the_repair(fit, how, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"steps": 4, "updates_per_rollout": 2, **how})


class Quiet(CreditOperator, reads="advantages", writes="advantages"):
    """Take the credit of every completion but the first."""

    def assign(self, rollout):
        first = torch.arange(len(rollout.mask))[:, None] == 0
        rollout.advantages = torch.ones_like(rollout.advantages).where(first, 0)
        return {}


def test_a_loss_that_asks_for_every_row_gets_every_row(fit):
    # The second update: the policy has left the reference, and rows without credit are drawn back to it too.
    spy = RolloutSpy()
    penalised = fit(steps=2, stack=[Quiet(), spy], loss=KLPenalty(beta=1.0), lr=1e-2, updates_per_rollout=2)
    seen = penalised.history[-1]
    quiet = fit(steps=2, stack=[Quiet()], loss=KLPenalty(beta=0.0), lr=1e-2, updates_per_rollout=2)
    assert seen["train/kl_reference"] > 0
    [rollout] = spy.seen
    module = penalised.module
    assert module.rows_to_score(rollout).all()
    assert int(quiet.module.rows_to_score(rollout).sum()) == 1
    logprobs = module(rollout).logprobs
    logprobs.retain_grad()
    arguments = (logprobs, rollout.old_logprobs, rollout.advantages, rollout.mask)
    module.loss(*arguments, **module.update_loss.collect_facts(rollout, rollout.entropy)).backward()
    assert (logprobs.grad[1:] != 0).any(-1).all()
