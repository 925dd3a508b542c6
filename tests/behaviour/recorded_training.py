"""Train on one process or on two, and keep every gradient and one metric of every step."""

import sys
from functools import partial
from pathlib import Path

import torch
from lightning.pytorch import Callback
from short_runs import make_unlogged_trainer
from tiny_traces import CHAIN_SUM

from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

TWO = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": False}
"""Arguments of a trainer of two processes."""


class GradientRecorder(Callback):
    """Keep the gradients that the optimizer gets, and a metric after every step."""

    def __init__(self, metric):
        self.metric, self.gradients, self.logged = metric, [], []

    def on_before_optimizer_step(self, trainer, module, optimizer):
        named = module.policy.named_parameters()
        self.gradients.append({name: weight.grad.clone() for name, weight in named if weight.requires_grad})

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.logged.append(float(trainer.callback_metrics[self.metric]))


def record_training(folder, steps, stack, metric, **trainer):
    """Train for some steps; return the gradients and the metric."""
    module = PolicyModule(
        sampling=Sampling(completions=8, max_tokens=48),
        validation=Sampling(completions=4, max_tokens=16),
        optimizer=partial(torch.optim.AdamW, lr=1e-3),
    )
    # One prompt for each of two processes: together they have the prompts in the order of one process.
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    recorder = GradientRecorder(metric)
    make_unlogged_trainer(steps, [*stack, recorder], default_root_dir=folder, **trainer).fit(module, task)
    return recorder.gradients, recorder.logged


def save_rank(train):
    """Train as one of two processes, and save what it returns, in the folder that the command line gives."""
    silence_libraries()
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    result = train(folder, **TWO)
    torch.save(result, folder / f"rank{torch.distributed.get_rank()}.pt")
