"""Train with an engine that decodes elsewhere, on one process or on two, the base whole or in parts.

The command line gives a folder, the strategy, tokens per micro-batch (0 for the whole batch) and, if they are not
two and none, steps and a checkpoint.
"""

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from lightning.pytorch import Callback, Trainer
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from callbacks.probes.gradient_probe import GradientProbe
from callbacks.tokens.gtpo import GTPO
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.distributed import find_largest_number
from rlcredit.policy.policy import Policy
from rlcredit.policy.sharding import find_decoder_layers
from rlcredit.tasks import ReasoningGym
from rlcredit.training import scoring
from rlcredit.training.module import PolicyModule
from rlcredit.training.nan_and_mismatch import trainable_weights
from tests.local_weights import count_local_weights


class Server(Engine):
    """Decode with a model of its own, to which the adapter is sent before each batch, as a server does."""

    own: Policy | None = None
    ahead = int(os.environ.get("AHEAD", "0"))

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        if self.own is None:
            self.own = Policy(policy.path)
            self.own.load()
        self.own.load_state_dict(trainable_weights(policy), strict=False)
        drawn = InProcessEngine().sample(self.own, prompt_ids, prompts, sampling, seed=seed, step=step)
        return replace(drawn, entropy=None, sum_pi_squared=None)


class SpareCounter:
    """Count the micro-batches that are there because another process has more."""

    count = 0

    @classmethod
    def find_largest_number(cls, number, device):
        largest = find_largest_number(number, device)
        cls.count += largest - number
        return largest


class StepRecorder(Callback):
    """Keep the gradient of every step, what was logged, and what a probe measured."""

    def __init__(self, probe):
        self.probe, self.gradients, self.logged = probe, [], []

    def on_train_start(self, trainer, module):
        place = Path(trainer.default_root_dir) / f"rank{trainer.global_rank}.pid"
        place.write_text(str(os.getpid()))

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.gradients.append({name: part.grad.clone() for name, part in trainable_weights(module).items()})

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if "time" not in name}
        self.logged.append({**metrics, **self.probe.last, "ids": batch.completion_ids.tolist()})


def train(folder, micro_batch_tokens, steps=2, ckpt_path=None, **more):
    """Train; return gradients, metrics, the adapter, and how many weights this process holds and its layers have."""
    module = PolicyModule(
        sampling=Sampling(completions=4, max_tokens=48),
        validation=Sampling(completions=4, max_tokens=12),
        optimizer=partial(torch.optim.AdamW, lr=1e-3),
        engine=Server(),
        micro_batch_tokens=micro_batch_tokens or "auto",
    )
    # 17 held-out questions, two at a time: one of two processes has a batch more.
    task = ReasoningGym(
        "chain_sum", CHAIN_SUM, train_size=64, validation_size=17, prompts_per_step=4, validation_batch=2
    )
    probe = GradientProbe(every_n_steps=1)
    recorder = StepRecorder(probe)
    trainer = Trainer(
        max_steps=steps,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        val_check_interval=1,
        callbacks=[GRPO(), GTPO(), probe, recorder],
        default_root_dir=folder,
        use_distributed_sampler=False,
        **more,
    )
    trainer.fit(module, task, ckpt_path=ckpt_path)
    layers = find_decoder_layers(module.policy.lm.get_base_model().base_model)
    return {
        "gradients": recorder.gradients,
        "logged": recorder.logged,
        "adapter": {name: value.detach().clone() for name, value in trainable_weights(module).items()},
        "held": count_local_weights(module.policy),
        "layers": sum(part.numel() for layer in layers for part in layer.parameters() if not part.requires_grad),
        "spare": SpareCounter.count,
    }


if __name__ == "__main__":
    silence_libraries()
    torch.set_num_threads(1)
    scoring.find_largest_number = SpareCounter.find_largest_number
    place, strategy, size, *rest = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:]
    found = train(place, size, *map(int, rest[:1]), *rest[1:], devices=2, strategy=strategy)
    torch.save(found, place / f"{strategy}{size}_rank{torch.distributed.get_rank()}.pt")
