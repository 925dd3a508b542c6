"""The loss of a credit from whole logits, completion by completion and token by token."""

import functools

import torch
from lightning.pytorch import Callback
from tiny_traces import CHAIN_SUM

from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.operator import CreditOperator
from rlcredit.formulas.turns import find_read_lengths
from rlcredit.losses import ClippedSurrogate
from rlcredit.tasks import ReasoningGym
from rlcredit.verification.verifiers import Verdict


class OneUnjudged(ReasoningGym):
    """Have no verdict on the second of every four completions."""

    def judge(self, completions, examples):
        verdicts = super().judge(completions, examples)
        return [Verdict.UNJUDGED if place % 4 == 1 else verdict for place, verdict in enumerate(verdicts)]


@functools.cache
def partly_judged_task():
    return OneUnjudged("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)


class RandomCredit(
    CreditOperator,
    reads="advantages completion_ids judged lookahead mask old_logprobs oracle",
    writes="advantages alternatives continuations",
):
    """Give random credit to tokens, to alternatives and to continuations, on unjudged completions too.

    Of every four completions the first has no credit of its own tokens, the third has no continuations, and the last
    no alternatives. Every third continuation has no credit.
    """

    def assign(self, rollout):
        noise = torch.Generator().manual_seed(0)
        found = rollout.lookahead.read_alternatives(rollout, smallest=0.01, most=5)
        weights = torch.randn(len(found.rows), generator=noise)
        others = WeightedTokens(found.rows, found.places, found.tokens, found.logprobs, weights)
        rollout.alternatives = others.keep(others.rows % 4 != 3)
        advantages = torch.randn(rollout.mask.shape, generator=noise)
        rollout.advantages = advantages * (torch.arange(len(rollout.mask)) % 4 != 0)[:, None]
        rows = torch.arange(len(rollout.mask)).repeat_interleave(2)
        rows = rows[rows % 4 != 2]
        places = (torch.rand(len(rows), generator=noise) * rollout.mask.sum(-1)[rows]).long()
        continued, _ = rollout.oracle.continue_prefixes(rollout, rows, places, samples=2)
        credit = torch.randn(continued.mask.shape, generator=noise)
        rollout.continuations = continued._replace(credit=credit * (torch.arange(len(credit)) % 3 != 0)[:, None])
        return {}


def plain_loss(module, rollout, credit):
    """Return the loss of some credit on a mini-batch, with graph."""
    policy, loss, judged = module.policy, module.loss, rollout.judged.tolist()
    counts = rollout.mask.sum(-1).tolist()
    counted = [count for count, known in zip(counts, judged) if known]
    others = [] if credit.alternatives is None else list(zip(*(part.tolist() for part in credit.alternatives)))
    total = torch.zeros(())
    for row, length in enumerate(find_read_lengths(rollout.mask).tolist()):
        if not judged[row]:
            continue
        share = {
            "token": 1 / sum(counted),
            "sequence": 1 / (len(counted) * counts[row]),
            "constant": 1 / (len(counted) * (loss.constant or 1)),
        }[loss.denominator]
        prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
        logits = policy.lm(input_ids=torch.cat([prompt, rollout.completion_ids[row, :length]])[None]).logits[0]
        log_p = (logits / module.sampling.temperature).log_softmax(-1)[len(prompt) - 1 :]
        credited = [
            (place, rollout.completion_ids[row, place], rollout.old_logprobs[row, place], credit.advantages[row, place])
            for place in range(length)
            if rollout.mask[row, place]
        ]
        credited += [(place, token, logprob, weight) for other, place, token, logprob, weight in others if other == row]
        for place, token, old_logprob, gain in credited:
            total = total - share * surrogate(loss, log_p[place, token] - old_logprob, gain)
        branches = [] if credit.continuations is None else list(zip(*credit.continuations))
        for other, place, ids, mask, logprobs, gains in branches:
            if other != row:
                continue
            own = ids[: int(find_read_lengths(mask[None]))]
            read = torch.cat([prompt, rollout.completion_ids[row, :place], own])
            logits = policy.lm(input_ids=read[None]).logits[0, -len(own) - 1 : -1]
            log_p = (logits / module.sampling.temperature).log_softmax(-1)
            for place, token in enumerate(own):
                if not mask[place]:
                    continue
                total = total - share * surrogate(loss, log_p[place, token] - logprobs[place], gains[place])
    return total


def surrogate(loss, log_ratio, gain):
    """Return what a loss maximises for a token: its ratio times its credit, bounded if the loss clips."""
    ratio = log_ratio.exp()
    if isinstance(loss, ClippedSurrogate):
        return torch.minimum(ratio * gain, ratio.clamp(1 - loss.low, 1 + loss.high) * gain)
    return ratio * gain


def differentiate(module, value, retain_graph=False):
    """Return the gradient of a value by the name of each trained weight."""
    weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
    parts = torch.autograd.grad(value, list(weights.values()), materialize_grads=True, retain_graph=retain_graph)
    return dict(zip(weights, parts))


class PlainGradients(Callback):
    """Keep the gradient of every update beside that of :func:`plain_loss`, the losses and the furthest ratio."""

    def __init__(self):
        self.plain, self.real, self.losses, self.rollouts, self.furthest = [], [], [], [], []

    def on_before_backward(self, trainer, module, loss):
        rollout = module.select_minibatch(module.state.rollout)
        plain = plain_loss(module, rollout, rollout.credit)
        self.plain.append(differentiate(module, plain))
        self.losses.append((plain.item(), loss.item()))
        self.rollouts.append(rollout)
        log_ratio = module.state.update.rollout.logprobs - rollout.old_logprobs
        self.furthest.append(log_ratio.detach().where(rollout.mask, 0).abs().max().item())

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.real.append({n: w.grad.clone() for n, w in module.named_parameters() if w.requires_grad})
