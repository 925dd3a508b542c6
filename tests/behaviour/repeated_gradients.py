"""Count the different results of equal computations on two threads; prints them as JSON, by case.

    python tests/behaviour/repeated_gradients.py ImportanceSampling KLPenalty:20 "head critic"

A loss, with a size of micro-batches behind a colon, is the gradient of one batch, fifteen times. A stack is a short
run, twice.
"""

import hashlib
import json
import sys
import warnings
from functools import partial

import torch
from lightning.pytorch import Callback
from short_runs import train_unlogged
from tiny_traces import CHAIN_SUM

import rlcredit.losses
from callbacks import GAE, GRPO, AdapterCritic, Branches, HeadCritic, RidgeCritic
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule
from tests.behaviour.test_golden_runs import CLOCKS
from tests.whole_logits import RandomCredit, differentiate

STACKS = {
    "head critic": [GRPO, HeadCritic, GAE],
    "ridge critic": [GRPO, RidgeCritic, GAE],
    "adapter critic": [GRPO, AdapterCritic, GAE],
    "branches": [Branches],
    "alternatives": [RandomCredit],
}


class LastBatch(Callback):
    """Keep the mini-batch of the last update with its credit, and the metrics of every step."""

    def __init__(self):
        self.rollout, self.metrics = None, []

    def on_before_backward(self, trainer, module, loss):
        self.rollout = module.select_minibatch(module.state.rollout)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        metrics = trainer.callback_metrics.items()
        self.metrics.append({name: float(value) for name, value in metrics if not CLOCKS.search(name)})


def train(stack, steps, **settings):
    """Train the embedded policy for a few steps; return the module and its last batch."""
    last = LastBatch()
    optimizer = partial(torch.optim.AdamW, lr=1e-2)
    module = PolicyModule(sampling=Sampling(completions=16, max_tokens=24), optimizer=optimizer, **settings)
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    train_unlogged(module, task, steps, [*stack, last])
    return module, last


def digest(tensors):
    """Return a hash of every bit of some named tensors."""
    bits = [name.encode() + tensor.detach().numpy().tobytes() for name, tensor in sorted(tensors.items())]
    return hashlib.sha256(b"".join(bits)).hexdigest()


def count_gradients(loss, micro_batch_tokens):
    """Return the number of different gradients of one batch with credit of every kind, in fifteen."""
    module, last = train([RandomCredit()], 1, loss=loss, micro_batch_tokens=micro_batch_tokens)
    rollout = last.rollout
    assert rollout.alternatives is not None
    assert rollout.continuations is not None
    value = module.update_loss.compute_loss(rollout, module(rollout), rollout.credit)
    return len({digest(differentiate(module, value, retain_graph=True)) for _ in range(15)})


def count_runs(stack):
    """Return the number of different adapters and metrics that a short run leaves, in two."""
    results = set()
    for _ in range(2):
        module, last = train([kind() for kind in stack], 3)
        adapter = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        results.add((digest(adapter), repr(last.metrics)))
    return len(results)


def count_results(case):
    """Return the number of different results of a case."""
    if case in STACKS:
        return count_runs(STACKS[case])
    name, _, size = case.partition(":")
    return count_gradients(getattr(rlcredit.losses, name)(), int(size) if size else "auto")


if __name__ == "__main__":
    silence_libraries()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    print(json.dumps({case: count_results(case) for case in sys.argv[1:]}))
