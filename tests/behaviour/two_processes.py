"""Train on two processes; the second spoils its loss at step 1 and its credit at step 2. Exit as a run does."""

import os
import sys
from functools import partial

import torch
from lightning.pytorch import Callback
from short_runs import make_unlogged_trainer
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.base.exit_status import RunStopped
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.decoding.sampling import Sampling
from rlcredit.losses import ImportanceSampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

SECOND = os.environ.get("LOCAL_RANK") == "1"


def print_in_one_piece(sentence):
    """Write a line in one piece: two processes write to the same place."""
    os.write(1, f"{sentence}\n".encode())


class SpoiledLoss(ImportanceSampling):
    """Be no number on the second process at step 1."""

    calls = 0

    def forward(self, *arguments, **facts):
        self.calls += 1
        return super().forward(*arguments, **facts) * (torch.nan if SECOND and self.calls == 2 else 1.0)


class SpoiledCredit(CreditOperator, reads="advantages step", writes="advantages"):
    """Divide by nothing on the second process at step 2."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages / (0.0 if SECOND and rollout.step == 2 else 1.0)
        return {"mean": rollout.advantages.mean()}


class SkippedStepPrinter(Callback):
    """Print which steps were passed over."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        print_in_one_piece(f"rank {trainer.global_rank}, step {trainer.global_step}, skipped {pl_module.state.skipped}")


def main() -> None:
    """Train into the folder that is given."""
    silence_libraries()
    torch.set_num_threads(1)
    module = PolicyModule(
        sampling=Sampling(completions=4, max_tokens=16),
        validation=Sampling(completions=4, max_tokens=16),
        loss=SpoiledLoss(),
        optimizer=partial(torch.optim.AdamW, lr=1e-3),
        skip_not_finite=2,
    )
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=4)
    ddp = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": False}
    trainer = make_unlogged_trainer(
        4, [GRPO(), SpoiledCredit(), SkippedStepPrinter()], default_root_dir=sys.argv[1], **ddp
    )
    try:
        trainer.fit(module, task)
    except RunStopped as ended:
        print_in_one_piece(f"rank {trainer.global_rank}, error: {ended}")
        sys.exit(ended.status)


if __name__ == "__main__":
    main()
