"""The gradient under other credit on the same batch, and the step that the optimizer would take."""

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from rlcredit.credit.alternatives import Credit, WeightedTokens
from rlcredit.credit.continuations import concatenate_continuations
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import rank_and_world_size, sum_over_processes
from rlcredit.formulas.gradient_vectors import Vector
from rlcredit.training.module import PolicyModule
from rlcredit.training.nan_and_mismatch import trainable_weights
from rlcredit.training.scoring import UpdateScores


def compute_credit_gradients(
    trainer: Trainer, module: PolicyModule, rollout: Rollout, credits: Sequence[Credit]
) -> list[Vector]:
    """Return the gradient of the loss under each of several ledgers: one forward pass, one backward pass each.

    Nothing is stepped, accumulated or kept: the run goes on as it would without.

    Args:
        trainer: Trainer, whose precision is used.
        module: Module with the loss and the weights.
        rollout: Mini-batch that the gradients are computed on.
        credits: Credit of each ledger.

    Returns:
        Float32 gradients by weight, averaged over all processes as data-parallel training does.

    """
    world = rank_and_world_size()[1]
    local_gradients = _compute_local_gradients(trainer, module, rollout, credits)
    return [{name: sum_over_processes(part) / world for name, part in gradient.items()} for gradient in local_gradients]


def compute_prompt_gradients(trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> list[Vector]:
    """Return the share of each prompt of this process in its gradient; the shares add up to the whole.

    One forward and one backward pass per prompt, over its completions only. What a loss adds without credit, such as a
    penalty, is taken off. Arguments as for :func:`compute_credit_gradients`.
    """
    prompt = torch.arange(len(rollout.mask), device=rollout.mask.device) // rollout.group_size
    shares = [credit.keep_rows(prompt == number) for number in prompt.unique().tolist()]
    if not module.loss.every_row:
        return [_compute_local_gradients(trainer, module, rollout, [share])[0] for share in shares]
    nothing = Credit(torch.zeros_like(credit.advantages))
    *with_credit, bare_gradient = _compute_local_gradients(trainer, module, rollout, [*shares, nothing])
    return [{name: gradient[name] - bare_gradient[name] for name in bare_gradient} for gradient in with_credit]


def compute_prompt_vectors(trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Tensor:
    """Return the shares of :func:`compute_prompt_gradients`, one row for each prompt, shape ``(P, D)`` float32."""
    shares = compute_prompt_gradients(trainer, module, rollout, credit)
    return torch.stack([torch.cat([part.flatten() for part in share.values()]) for share in shares])


def _compute_local_gradients(
    trainer: Trainer, module: PolicyModule, rollout: Rollout, credits: Sequence[Credit]
) -> list[dict[str, Tensor]]:
    """Of this process alone."""
    weights = trainable_weights(module)
    union, results = copy.copy(rollout), []
    union.advantages = torch.stack([(credit.advantages != 0).float() for credit in credits]).sum(0)
    all_alternatives = [credit.alternatives for credit in credits if credit.alternatives is not None]
    union.alternatives = (
        WeightedTokens(*map(torch.cat, zip(*all_alternatives, strict=True))) if all_alternatives else None
    )
    branches = [credit.continuations for credit in credits if credit.continuations is not None]
    union.continuations = concatenate_continuations(branches) if branches else None
    with torch.enable_grad(), trainer.precision_plugin.forward_context():
        scores: UpdateScores = module(union)
        for index, credit in enumerate(credits):
            loss = module.update_loss.compute_loss(rollout, _select_scores(scores, credits, index), credit)
            more_follow = index + 1 < len(credits)
            parts = torch.autograd.grad(loss, list(weights.values()), retain_graph=more_follow, materialize_grads=True)
            results.append({name: part.detach().float() for name, part in zip(weights, parts, strict=True)})
    return results


def _select_scores(scores: UpdateScores, credits: Sequence[Credit], index: int) -> UpdateScores:
    """Return scores of the tokens outside the completions to which one of several ledgers gives credit."""

    def locate_own(name: str) -> slice:
        counts = [0 if part is None else len(part.rows) for part in (getattr(credit, name) for credit in credits)]
        return slice(sum(counts[:index]), sum(counts[: index + 1]))

    alternative_scores, branches = scores.alternatives, scores.continuations
    if alternative_scores is not None:
        scores = scores._replace(alternatives=alternative_scores[locate_own("alternatives")])
    if branches is not None and (own_branches := credits[index].continuations) is not None:
        scores = scores._replace(continuations=branches[locate_own("continuations"), : own_branches.mask.shape[1]])
    return scores


class AdamStep(NamedTuple):
    """Adam's result for a gradient: preconditioned, and as the whole change of the weights."""

    preconditioned: Vector
    change: Vector


def predict_optimizer_steps(trainer: Trainer, module: PolicyModule, vectors: Sequence[Vector]) -> list[AdamStep]:
    """Predict the optimizer's step for each gradient, after clipping; None if it is not Adam.

    Nor are its variants ``amsgrad`` and ``maximize`` predicted.
    """
    optimizer = trainer.optimizers[0]
    if not isinstance(optimizer, torch.optim.Adam):
        return []
    if any(group["amsgrad"] or group["maximize"] for group in optimizer.param_groups):
        return []
    names = {weight: name for name, weight in module.named_parameters()}
    return [predict_adam_step(optimizer, clip_gradient(trainer, gradient), names) for gradient in vectors]


def predict_adam_step(
    optimizer: torch.optim.Adam, gradient: Vector, names: Mapping[torch.nn.Parameter, str]
) -> AdamStep:
    r"""Predict Adam's next step from its moments as they are, without taking it.

    .. math:: \frac{g}{\sqrt{\hat v'} + \epsilon} \qquad\text{and}\qquad
        -\eta \Bigl(\frac{\hat m'}{\sqrt{\hat v'} + \epsilon} + \lambda \theta\Bigr)

    with :math:`m', v'` the moments after this gradient. The step shares its momentum with every other step from here;
    the preconditioned gradient is the part that is new.

    Args:
        optimizer: Adam or AdamW, possibly before its first step.
        gradient: Gradient as the optimizer will see it, clipped.
        names: Names of the weights.

    """
    preconditioned, change = {}, {}
    for group in optimizer.param_groups:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        is_decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW))
        for weight in group["params"]:
            name, state = names[weight], optimizer.state.get(weight, {})
            g = gradient[name].to(weight.dtype)
            if not is_decoupled:
                g = g + decay * weight.detach()
            step = float(state["step"]) + 1 if state else 1.0
            m = beta1 * state["exp_avg"] + (1 - beta1) * g if state else (1 - beta1) * g
            v = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g if state else (1 - beta2) * g * g
            scale = (v / (1 - beta2**step)).sqrt() + group["eps"]
            preconditioned[name] = g / scale
            shrink = decay * weight.detach() if is_decoupled else 0.0
            change[name] = -lr * (m / (1 - beta1**step) / scale + shrink)
    return AdamStep(preconditioned, change)


def clip_gradient(trainer: Trainer, gradient: Vector) -> Vector:
    """Return the gradient as the trainer's clipping leaves it."""
    limit = trainer.gradient_clip_val
    if not limit:
        return gradient
    if trainer.gradient_clip_algorithm == "value":
        return {name: part.clamp(-limit, limit) for name, part in gradient.items()}
    norm = torch.nn.utils.get_total_norm(list(gradient.values()))
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    return {name: part * factor for name, part in gradient.items()}
