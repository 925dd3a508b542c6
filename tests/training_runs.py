"""Short training runs of the embedded policy, in the process of the test."""

import functools
from dataclasses import dataclass
from functools import partial

import torch
from lightning.pytorch import Callback, Trainer, seed_everything
from tiny_traces import CHAIN_SUM

from callbacks.episode.grpo import GRPO
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule

MODULE_ARGUMENTS = (
    *("micro_batch_tokens", "loss", "policy", "updates_per_rollout", "minibatches", "dynamic_sampling"),
    *("optimizer", "scheduler", "skip_not_finite", "sampler_tolerance", "mismatch_cap", "seed", "validation_seed"),
)
"""Arguments of a short run that are the module's; unknown ones are the trainer's."""


@functools.cache
def share_task(prompts: int) -> ReasoningGym:
    """Return the task of short runs, which share its questions and the process that judges answers."""
    return ReasoningGym("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=prompts)


@dataclass
class ShortRun:
    """What a short training run leaves behind."""

    module: PolicyModule
    history: list[dict[str, float]]

    @property
    def losses(self) -> list[float]:
        return [step["train/loss"] for step in self.history]

    @property
    def adapter(self) -> dict[str, torch.Tensor]:
        return {k: v.detach().clone() for k, v in self.module.named_parameters() if v.requires_grad}


class StepMetrics(Callback):
    """Keep the metrics of every step."""

    def __init__(self) -> None:
        self.steps = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        self.steps.append({name: float(value) for name, value in trainer.callback_metrics.items()})


def train_policy(
    folder,
    steps=2,
    stack=None,
    lr=1e-3,
    prompts=2,
    completions=8,
    max_tokens=48,
    temperature=0.7,
    decode=None,
    task=None,
    engine=None,
    **trainer,
):
    """Train the embedded policy for a few steps; files go to the folder."""
    ckpt_path = trainer.pop("ckpt_path", None)
    module_args = {"optimizer": partial(torch.optim.AdamW, lr=lr, weight_decay=0.0)}
    module_args |= {key: trainer.pop(key) for key in MODULE_ARGUMENTS if key in trainer}
    seed_everything(0, verbose=False)
    module = PolicyModule(
        sampling=Sampling(completions=completions, max_tokens=max_tokens, temperature=temperature),
        validation=Sampling(completions=4, max_tokens=96),
        engine=engine or InProcessEngine(decode),
        **module_args,
    )
    data = task or share_task(prompts)
    history = StepMetrics()
    Trainer(
        **{
            "max_steps": steps,
            "accelerator": "cpu",
            "logger": False,
            "limit_val_batches": 0,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "log_every_n_steps": 1,
            "default_root_dir": folder,
            "callbacks": [*([GRPO()] if stack is None else stack), history],
            **trainer,
        }
    ).fit(module, data, ckpt_path=ckpt_path, weights_only=None if ckpt_path is None else True)
    return ShortRun(module, history.steps)


def assert_like_adapter(adapter, expected):
    """Assert that adapters differ by rounding alone, each matrix as a whole.

    Where a gradient is nearly zero, Adam makes a step of its rounding, so that one weight in a thousand may differ by
    far more than the others do.
    """
    for name, weight in expected.items():
        gap = float((adapter[name] - weight).norm() / weight.norm())
        assert gap < 1e-3, (name, gap)
