"""Train with a critic on one process or on two, and keep every gradient and what the critic has learned."""

import sys
from functools import partial
from pathlib import Path

import torch
from lightning.pytorch import Callback
from short_runs import make_unlogged_trainer
from tiny_traces import CHAIN_SUM

from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.grpo import GRPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule


class GradientRecorder(Callback):
    """Keep the gradients that the optimizer gets, and how much credit came from the critic."""

    def __init__(self):
        self.gradients, self.weights = [], []

    def on_before_optimizer_step(self, trainer, module, optimizer):
        named = module.policy.named_parameters()
        self.gradients.append({name: weight.grad.clone() for name, weight in named if weight.requires_grad})

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.weights.append(float(trainer.callback_metrics["credit/ExpectedGradient/weight"]))


def train_with_critic(folder, **trainer):
    """Train for four steps; return the gradients, the weights of the critic, and its network."""
    module = PolicyModule(
        sampling=Sampling(completions=8, max_tokens=48),
        validation=Sampling(completions=4, max_tokens=16),
        optimizer=partial(torch.optim.AdamW, lr=1e-3),
    )
    # One prompt for each of two processes: together they have the prompts in the order of one process.
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    critic, recorder = HeadCritic(width=8, fits=5, batch=64, warmup=2), GradientRecorder()
    stack = [GRPO(), critic, ExpectedGradient(share=0.5), recorder]
    make_unlogged_trainer(4, stack, default_root_dir=folder, **trainer).fit(module, task)
    return recorder.gradients, recorder.weights, critic.network["weights"]


def main() -> None:
    """Train as one of two processes into the folder that is given."""
    silence_libraries()
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    result = train_with_critic(folder, devices=2, strategy="ddp", use_distributed_sampler=False)
    torch.save(result, folder / f"rank{torch.distributed.get_rank()}.pt")


if __name__ == "__main__":
    main()
