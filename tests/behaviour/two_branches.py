"""Train on continuations in one process or in two, and keep every gradient and the numbers of tokens."""

import sys
from functools import partial
from pathlib import Path

import torch
from lightning.pytorch import Callback
from short_runs import make_unlogged_trainer
from tiny_traces import CHAIN_SUM

from callbacks.dense.branches import Branches
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule


class GradientRecorder(Callback):
    """Keep the gradients that the optimizer gets, and the tokens decoded so far."""

    def __init__(self):
        self.gradients, self.decoded = [], []

    def on_before_optimizer_step(self, trainer, module, optimizer):
        named = module.policy.named_parameters()
        self.gradients.append({name: weight.grad.clone() for name, weight in named if weight.requires_grad})

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.decoded.append(float(trainer.callback_metrics["tokens/decoded"]))


def train_on_branches(folder, **trainer):
    """Train for three steps; return the gradients and the tokens decoded."""
    module = PolicyModule(
        sampling=Sampling(completions=8, max_tokens=48),
        validation=Sampling(completions=4, max_tokens=16),
        optimizer=partial(torch.optim.AdamW, lr=1e-3),
    )
    # One prompt for each of two processes: together they have the prompts in the order of one process.
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    recorder = GradientRecorder()
    stack = [Branches(rule="random", rate=0.03), recorder]  # so seldom that a process may have no fork
    make_unlogged_trainer(3, stack, default_root_dir=folder, **trainer).fit(module, task)
    return recorder.gradients, recorder.decoded


def main() -> None:
    """Train as one of two processes into the folder that is given."""
    silence_libraries()
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    result = train_on_branches(folder, devices=2, strategy="ddp", use_distributed_sampler=False)
    torch.save(result, folder / f"rank{torch.distributed.get_rank()}.pt")


if __name__ == "__main__":
    main()
