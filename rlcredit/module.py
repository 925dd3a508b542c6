"""The LightningModule: prompts become a rollout, the ledger becomes a loss. It knows no operator."""

import time
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from rlcredit.engines.in_process import InProcessEngine
from rlcredit.engines.noise import VALIDATION
from rlcredit.engines.sampling import Samples, Sampling
from rlcredit.functional.masked import masked_mean
from rlcredit.losses import ImportanceSampling
from rlcredit.metrics import PassAtK, policy_metrics, sampling_metrics
from rlcredit.policy import Policy
from rlcredit.rewards import are, rewards
from rlcredit.rollout import Rollout
from rlcredit.tasks.base import Prompts, Task
from rlcredit.verifiers import Verdict

PARTS = 4
"""In how many parts a batch is scored that fits into memory as a whole."""


class PolicyModule(LightningModule):
    """Sample with the policy, let the callbacks assign credit, and take one step along it.

    Args:
        policy: what is sampled and trained.
        sampling: how a training rollout is drawn; its temperature is the policy's in every forward.
        validation: how held-out questions are answered.
        pass_k: k of ``val/pass_at_k``.
        engine: who decodes.
        loss: credit to a scalar.
        optimizer: of the adapter's weights.
        scheduler: of the learning rate, stepped after every update; constant if None.
        micro_batch_size: completions per forward pass of the update; the whole batch if None. It changes memory only.
        seed: of the adapter's first weights and of the sampling noise.

    """

    def __init__(
        self,
        policy: Policy | None = None,
        sampling: Sampling | None = None,
        validation: Sampling | None = None,
        pass_k: int = 4,
        engine: InProcessEngine | None = None,
        loss: nn.Module | None = None,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        scheduler: LRSchedulerCallable | None = None,
        micro_batch_size: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.policy = policy or Policy()
        self.sampling = sampling or Sampling()
        self.validation = validation or Sampling(completions=4)
        self.engine = engine or InProcessEngine()
        self.loss = loss or ImportanceSampling()
        self.optimizer, self.scheduler = optimizer, scheduler
        self.micro_batch_size, self.seed = micro_batch_size, seed
        if micro_batch_size is not None and micro_batch_size < 1:
            raise ValueError(f"model.micro_batch_size must be at least 1, got {micro_batch_size}.")
        if pass_k < 1:
            raise ValueError(f"model.pass_k must be at least 1, got {pass_k}.")
        if pass_k > self.validation.completions:
            raise ValueError(
                f"model.pass_k is {pass_k}, but only {self.validation.completions} completions are drawn. "
                "Raise model.validation.completions."
            )
        self.pass_at_1, self.pass_at_k = PassAtK(1), PassAtK(pass_k)
        self.strict_loading = False  # a checkpoint holds the adapter only
        self.measured: dict[str, float] = {}
        self.needs: set[str] = set()

    @staticmethod
    def check(trainer: Trainer) -> None:
        """Refuse a trainer under which gates, averages and quantiles would see a part of a batch.

        Raises:
            ValueError: with the repair.

        """
        if trainer.accumulate_grad_batches != 1:
            raise ValueError(
                f"trainer.accumulate_grad_batches is {trainer.accumulate_grad_batches}; credit is assigned to "
                "whole batches, so it must be 1. To save memory set model.micro_batch_size instead."
            )

    def setup(self, stage: str) -> None:
        """Check the trainer once it is attached."""
        self.check(self.trainer)

    def configure_model(self) -> None:
        """Read the weights, late: whatever can be wrong before has been found by now."""
        self.policy.load(self.seed)

    def configure_optimizers(self) -> Any:
        """Train the adapter, nothing else."""
        optimizer = self.optimizer([weight for weight in self.policy.parameters() if weight.requires_grad])
        if self.scheduler is None:
            return optimizer
        return [optimizer], [{"scheduler": self.scheduler(optimizer), "interval": "step"}]

    def on_after_batch_transfer(self, batch: Prompts, dataloader_idx: int) -> Rollout | Prompts:
        """Answer the prompts with the current policy, so that callbacks meet a rollout."""
        if not self.trainer.training:
            return batch
        return self.rollout(batch)

    @torch.no_grad()
    def rollout(self, prompts: Prompts) -> Rollout:
        """Sample G completions per prompt and have them judged."""
        started = self._now()
        prompt_ids, samples = self._sampled(prompts, self.sampling, self.seed, self.global_step)
        group = self.sampling.completions
        prompt_ids = prompt_ids.repeat_interleave(group, 0)
        reference = self._reference(prompt_ids, samples) if "ref_logprobs" in self.needs else None
        decoded = self._now()
        tokens = self.policy.pieces(samples.completion_ids, samples.mask)
        verdicts = self._judged(prompts, tokens, group)
        self._clock = self._now()
        right, judged = are(verdicts, Verdict.RIGHT), are(verdicts, Verdict.RIGHT, Verdict.WRONG)
        self.measured = {
            "time/rollout": decoded - started,
            "time/verify": self._clock - decoded,
            "train/solve_rate": masked_mean(right.float(), judged).item(),
            "train/unjudged": 1 - judged.float().mean().item(),
            "train/truncated": samples.truncated.float().mean().item(),
        }
        return Rollout(
            step=self.global_step,
            group_size=group,
            prompt_ids=prompt_ids,
            completion_ids=samples.completion_ids,
            mask=samples.mask,
            old_logprobs=samples.logprobs,
            entropy=samples.entropy,
            rewards=rewards(right, judged, group).to(self.device),
            tokens=tokens,
            ref_logprobs=reference,  # pyright: ignore[reportArgumentType]
        )

    def _reference(self, prompt_ids: Tensor, samples: Samples) -> Tensor:
        """Score what was sampled with the adapter off, tempered as the policy is."""
        rows = torch.arange(len(prompt_ids), device=prompt_ids.device)
        with self.policy.sampling(), self.policy.adapter_off(), self.trainer.precision_plugin.forward_context():
            scored = [
                self.policy.logprobs(prompt_ids[part], samples.completion_ids[part], self.sampling.temperature).logprobs
                for part in (rows.split(self.micro_batch_size) if self.micro_batch_size else [rows])
            ]
        return torch.cat(scored).where(samples.mask, 0)

    def _sampled(self, prompts: Prompts, sampling: Sampling, seed: int, step: int) -> tuple[Tensor, Samples]:
        prompt_ids = self.policy.encode(prompts.questions).to(self.device)
        if self.trainer.training and self.trainer.world_size > 1:
            # Padding is part of the arithmetic: all processes pad to one width, as a single one would. In validation
            # the processes may have different numbers of batches, and one would wait for ever.
            longest = torch.tensor(prompt_ids.shape[1], device=self.device)
            width = int(self.trainer.strategy.reduce(longest, reduce_op="max"))  # pyright: ignore[reportArgumentType]
            prompt_ids = pad(prompt_ids, (width - prompt_ids.shape[1], 0), value=self.policy.tokenizer.pad_token_id)
        with self.trainer.precision_plugin.forward_context():
            samples = self.engine.sample(self.policy, prompt_ids, prompts.numbers, sampling, seed=seed, step=step)
        return prompt_ids, samples

    def _judged(self, prompts: Prompts, tokens: list[list[str]], group: int) -> list[Verdict]:
        task: Task = self.trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        examples = [example for example in prompts.examples for _ in range(group)]
        return task.judge(["".join(pieces) for pieces in tokens], examples)

    def on_train_batch_start(self, batch: Rollout, batch_idx: int) -> None:
        """Stop the credit clock; Lightning calls this after every callback has had its say."""
        self._lap("time/credit")

    def training_step(self, batch: Rollout, batch_idx: int) -> Tensor:
        """Turn the credit in the ledger into a loss."""
        batch.logprobs = self(batch)
        loss = self.loss(batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask)
        self._log({"train/loss": loss.detach(), **self.measured, **sampling_metrics(batch)}, len(batch.mask))
        for name, value in policy_metrics(batch).items():
            over_ranks = name.rpartition("_")[2] if name.startswith("train/ratio") else "mean"
            self.log(name, value, reduce_fx=over_ranks, sync_dist=self.trainer.world_size > 1)
        return loss

    def forward(self, rollout: Rollout) -> Tensor:
        """Return log pi of the sampled tokens with graph, shape ``(B, T)``.

        Rows without advantage have no gradient and keep ``old_logprobs``; the others are scored in parts of similar
        length, so that short completions do not pay for the padding of long ones. Micro-batches are computed again in
        the backward pass; without them all parts stay in memory.
        """
        credited = rollout.credited()
        credited[0] |= ~credited.any()  # the optimizer wants a graph, even of a gradient that is zero
        rows = credited.nonzero().squeeze(-1)
        rows = rows[rollout.mask.sum(-1)[rows].argsort(stable=True)]
        parts = rows.split(self.micro_batch_size) if self.micro_batch_size else rows.chunk(PARTS)
        recompute = self.micro_batch_size is not None and len(parts) > 1
        scored = [self._scored(rollout, part, recompute) for part in parts]
        return rollout.old_logprobs.index_copy(0, rows, torch.cat(scored))

    def _scored(self, rollout: Rollout, rows: Tensor, recompute: bool) -> Tensor:
        """Score some rows, free of columns that are padding in all of them."""
        prompt_ids, width = rollout.prompt_ids[rows], int(rollout.mask[rows].sum(-1).max())
        prompt_ids = prompt_ids[:, self.policy.prompt_mask(prompt_ids).any(0)]
        arguments = (prompt_ids, rollout.completion_ids[rows, :width], self.sampling.temperature)
        if recompute:
            scores = checkpoint(self.policy.logprobs, *arguments, use_reentrant=False)
        else:
            scores = self.policy.logprobs(*arguments)
        return pad(scores.logprobs, (0, rollout.mask.shape[1] - width))

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the gradient norm before Lightning clips it."""
        gradients = [weight.grad for weight in self.policy.parameters() if weight.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        # A scaler of half-precision gradients skips steps that overflow; without one, nothing may.
        if not norm.isfinite() and self.trainer.precision != "16-mixed":
            raise FloatingPointError(
                f"The gradient of step {self.global_step} is {norm.item()}. Lower the learning rate."
            )
        self._log({"train/gradient_norm": norm}, 1)

    def on_train_batch_end(self, outputs: Any, batch: Rollout, batch_idx: int) -> None:
        """Log what the step cost."""
        self._lap("time/update")
        seconds = sum(value for name, value in self.measured.items() if name.startswith("time/"))
        tokens = batch.mask.sum().item() * self.trainer.world_size
        speed = {"time/update": self.measured["time/update"], "train/tokens_per_second": tokens / seconds}
        self._log(speed, len(batch.mask))

    def validation_step(self, batch: Prompts, batch_idx: int) -> None:
        """Answer held-out questions, always with the same noise."""
        _, samples = self._sampled(batch, self.validation, 0, VALIDATION)
        tokens = self.policy.pieces(samples.completion_ids, samples.mask)
        verdicts = self._judged(batch, tokens, self.validation.completions)
        right = are(verdicts, Verdict.RIGHT).view(-1, self.validation.completions)
        self.pass_at_1.update(right)
        self.pass_at_k.update(right)
        unjudged = are(verdicts, Verdict.UNJUDGED).float().mean().item()
        self.log_dict({"val/pass_at_1": self.pass_at_1, "val/pass_at_k": self.pass_at_k}, batch_size=len(right))
        # What Lightning logs the results at.
        self._log({"step": float(self.global_step)}, len(right))
        length = samples.mask.sum(-1).float().mean()
        self._log({"val/unjudged": unjudged, "val/completion_length": length}, len(right))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the adapter only; the base weights have not changed."""
        learned = {name for name, weight in self.named_parameters() if weight.requires_grad}
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in learned}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse an adapter of another shape; loading is not strict, and would pass over it.

        Raises:
            ValueError: with the weights that do not fit.

        """
        learned = {name: weight.shape for name, weight in self.named_parameters() if weight.requires_grad}
        saved = {name: weight.shape for name, weight in checkpoint["state_dict"].items()}
        if differing := sorted(name for name in learned.keys() | saved.keys() if learned.get(name) != saved.get(name)):
            raise ValueError(
                f"The checkpoint holds another adapter: {len(differing)} weights differ, {differing[0]} first. "
                "Use the model.policy.lora it was trained with."
            )

    def _log(self, metrics: dict[str, Any], batch_size: int) -> None:
        self.log_dict(metrics, batch_size=batch_size, sync_dist=self.trainer.world_size > 1)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _lap(self, name: str) -> None:
        now = self._now()
        self.measured[name], self._clock = now - self._clock, now
