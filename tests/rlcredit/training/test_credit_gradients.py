"""Gradients and steps against the optimizer itself."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from rlcredit.credit.alternatives import Credit
from rlcredit.formulas.gradient_vectors import inner_product
from rlcredit.losses import KLPenalty
from rlcredit.training.credit_gradients import (
    clip_gradient,
    compute_credit_gradients,
    compute_prompt_gradients,
    predict_adam_step,
    predict_optimizer_steps,
)
from tests.slow_cases import mark_others_slow
from tests.whole_logits import RandomCredit, differentiate, partly_judged_task, plain_loss


class Both(Callback):
    """Measure before the backward pass; look at what the real one and the optimizer did after it."""

    def __init__(self):
        self.predicted, self.gradient, self.change, self.shares, self.seen = [], [], [], [], []

    def on_before_backward(self, trainer, module, loss):
        rollout = module.select_minibatch(module.state.rollout)
        [whole] = compute_credit_gradients(trainer, module, rollout, [rollout.credit])
        names = {weight: name for name, weight in module.named_parameters()}
        self.predicted.append(predict_adam_step(trainer.optimizers[0], clip_gradient(trainer, whole), names).change)
        self.shares.append(compute_prompt_gradients(trainer, module, rollout, rollout.credit))
        self.seen.append(whole)
        self.before = {n: w.detach().clone() for n, w in module.named_parameters() if w.requires_grad}

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.gradient.append({n: w.grad.clone() for n, w in module.named_parameters() if w.requires_grad})

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.change.append({n: w.detach() - self.before[n] for n, w in module.named_parameters() if w.requires_grad})


@pytest.mark.parametrize("how", mark_others_slow([{"gradient_clip_val": 0.01}, {}, {"updates_per_rollout": 3}]))
def test_gradient_and_step_are_those_that_follow(fit, how):
    both = Both()
    fit(steps=3, stack=[GRPO(), both], **how)
    for seen, real, predicted, change, shares in zip(
        both.seen, both.gradient, both.predicted, both.change, both.shares
    ):
        assert inner_product(real, real) > 0
        for name in real:
            assert_close(seen[name], real[name], atol=1e-7, rtol=1e-4)
            assert_close(predicted[name], change[name], atol=1e-6, rtol=1e-3)
            assert_close(sum(share[name] for share in shares), real[name], atol=1e-6, rtol=1e-3)


class SeveralCredits(Callback):
    """Compare the gradients of several credits, and the shares of prompts, with whole logits."""

    def __init__(self):
        self.compared = []

    def on_before_backward(self, trainer, module, loss):
        rollout = module.state.rollout
        given, others, branches = rollout.credit, rollout.alternatives, rollout.continuations
        shorter = branches._replace(mask=branches.mask & (torch.arange(branches.mask.shape[1]) < 5))
        shorter = shorter._replace(**{name: getattr(shorter, name)[:, :5] for name in shorter._fields[2:]})
        halved = others._replace(weights=others.weights / 2).keep(others.rows % 2 == 0)
        credits = [
            given,
            Credit(given.advantages.flip(0)),
            Credit(torch.zeros_like(given.advantages), halved),
            Credit(given.advantages, others.keep(others.places < 4), shorter.keep(branches.rows != 3)),
            Credit(torch.zeros_like(given.advantages), continuations=branches._replace(credit=-branches.credit)),
        ]
        found = compute_credit_gradients(trainer, module, rollout, credits)
        expected = [differentiate(module, plain_loss(module, rollout, credit)) for credit in credits]
        self.compared += zip(found, expected)
        prompts = torch.arange(len(rollout.mask)) // rollout.group_size
        shares = compute_prompt_gradients(trainer, module, rollout, given)
        for number, share in enumerate(shares):
            kept = given.keep_rows(prompts == number)
            self.compared.append((share, differentiate(module, plain_loss(module, rollout, kept))))
        self.compared.append(({name: sum(share[name] for share in shares) for name in found[0]}, expected[0]))


def test_each_of_several_credits_with_alternatives_and_continuations_has_its_own_gradient(fit):
    several = SeveralCredits()
    fit(steps=1, stack=[RandomCredit(), several], completions=4, max_tokens=24, task=partly_judged_task())
    assert len(several.compared) == 5 + 2 + 1
    for found, expected in several.compared:
        assert max(gradient.abs().max() for gradient in found.values()) > 1e-3
        for name in expected:
            assert_close(found[name], expected[name], atol=2e-6, rtol=1e-3)


def test_a_penalty_is_no_prompts_share(fit):
    plain, penalised = Both(), Both()
    fit(steps=1, stack=[GRPO(), plain])
    fit(steps=1, stack=[GRPO(), penalised], loss=KLPenalty(beta=5.0))
    for one, two in zip(plain.shares[0], penalised.shares[0]):
        for name in one:
            assert_close(one[name], two[name], atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize(
    "optimizer",
    [
        partial(torch.optim.Adam, weight_decay=0.1),
        partial(torch.optim.AdamW, weight_decay=0.1, betas=(0.5, 0.9)),
        partial(torch.optim.Adam, weight_decay=0.1, decoupled_weight_decay=True),
    ],
)
def test_the_step_is_that_of_each_kind_of_adam(optimizer):
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    adam = optimizer([weight], lr=0.01)
    for gradient in (torch.tensor([0.3, -0.1]), torch.tensor([-0.2, 0.4])):
        predicted = predict_adam_step(adam, {"w": gradient}, {weight: "w"}).change["w"]
        before, weight.grad = weight.detach().clone(), gradient
        adam.step()
        assert_close(weight.detach() - before, predicted, atol=1e-7, rtol=1e-5)


def test_variants_that_are_not_predicted_are_not():
    weight = torch.nn.Parameter(torch.ones(2))
    for variant in ({"amsgrad": True}, {"maximize": True}):
        trainer = SimpleNamespace(optimizers=[torch.optim.AdamW([weight], **variant)])
        assert predict_optimizer_steps(trainer, torch.nn.Module(), [{"w": torch.ones(2)}]) == []
