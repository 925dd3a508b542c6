"""The LightningModule: a rollout and its credit become a loss. It knows no operator."""

from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.engine import Decoder, Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import stream_number, token_uniforms
from rlcredit.decoding.sampling import Sampling
from rlcredit.losses import ImportanceSampling, PolicyLoss
from rlcredit.losses.base import bounded_ratio
from rlcredit.policy.policy import Policy, PromptContext, TokenScores
from rlcredit.tasks.task import PromptBatch, Task
from rlcredit.training.checks import UpdateValues
from rlcredit.training.dynamic_sampling import DynamicSampling
from rlcredit.training.guarded_update import GuardedUpdate
from rlcredit.training.metrics import MeanPassAtK, policy_metrics, sampling_metrics
from rlcredit.training.micro_batches import TOKENS, MicroBatches, Size, split_rows_by_tokens

SPLITTING = (FSDPStrategy, ModelParallelStrategy, DeepSpeedStrategy)
"""Strategies under which no process holds the weights."""


class PolicyModule(GuardedUpdate):
    """Sample with the policy, let the callbacks assign credit, and take one or more steps along it.

    Args:
        policy: what is sampled and trained.
        sampling: how a training rollout is drawn; its temperature is the policy's in every forward.
        validation: how held-out questions are answered.
        pass_k: k of ``val/pass_at_k``.
        validation_seed: of the noise with which held-out questions are answered. One number for all runs pairs them;
            with None it is the run's own seed, and an interval over seeds holds for new draws too.
        engine: who decodes.
        dynamic_sampling: whether groups that teach nothing are replaced; they are not if None.
        loss: credit to a scalar; importance sampling if None.
        optimizer: of the adapter's weights.
        scheduler: of the learning rate, stepped after every update; constant if None.
        updates_per_rollout: optimizer steps taken with one rollout and its credit. ``global_step``, and whatever is
            counted in steps, counts updates; what operators average over batches counts rollouts. Metrics of a rollout
            stand beside each of its updates.
        minibatches: parts into which the prompts of a rollout are cut; every update uses the next one. Divides
            ``updates_per_rollout``.
        micro_batch_size: completions per forward pass of the update, if all are as long as the longest; more of them
            where they are shorter. The whole batch if None, as many as turn out to fit into a GPU's memory if ``auto``.
            It changes memory only.
        seed: of the adapter's first weights and of the sampling noise.
        skip_not_finite: a step whose loss or gradient is not finite changes nothing and is counted in
            ``train/skipped``; this many of them in a row stop the run. 0 and 1 stop it at the first.
        sampler_tolerance: how far from one the importance ratio of a token may lie in the first update of a rollout, as
            a root mean square, and how far an engine's log-probabilities from the trainer's; beyond it the run stops.
            If None, 0.01 in float32 and 0.2 in fewer bits; ``inf`` never stops.
        mismatch_cap: largest weight of a token that the trainer finds more probable than the engine that drew it did;
            see :meth:`corrected`. Nothing is corrected if None.

    Attributes:
        between_steps: called before prompts are answered, when everything of the step before has been logged and
            evaluated and nothing of the next has begun.
        midstep: whether a step is incomplete, so that a checkpoint or the record would lack a part of it.
        evaluating: whether the evaluation after the last step has begun and not been recorded.

    """

    def __init__(
        self,
        policy: Policy | None = None,
        sampling: Sampling | None = None,
        validation: Sampling | None = None,
        pass_k: int = 4,
        validation_seed: int | None = 0,
        engine: Engine | None = None,
        dynamic_sampling: DynamicSampling | None = None,
        loss: PolicyLoss | None = None,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        scheduler: LRSchedulerCallable | None = None,
        updates_per_rollout: int = 1,
        minibatches: int = 1,
        micro_batch_size: Size = None,
        seed: int = 0,
        skip_not_finite: int = 0,
        sampler_tolerance: float | None = None,
        mismatch_cap: float | None = 2.0,
    ) -> None:
        super().__init__()
        self.policy = policy or Policy()
        self.sampling, self.validation = sampling or Sampling(), validation or Sampling(completions=4)
        self.engine, self.dynamic_sampling, self.seed = engine or InProcessEngine(), dynamic_sampling, seed
        if pass_k < 1:
            raise ValueError(f"model.pass_k must be at least 1, got {pass_k}.")
        if pass_k > self.validation.completions:
            raise ValueError(
                f"model.pass_k is {pass_k}, but only {self.validation.completions} completions are drawn. "
                "Raise model.validation.completions."
            )
        self.validation_seed = seed if validation_seed is None else validation_seed
        self.pass_k, self.pass_at_1, self.pass_at_k = pass_k, MeanPassAtK(1), MeanPassAtK(pass_k)
        self.pass_of_others = ModuleList()
        self.micro_batches, self.scoring = MicroBatches(micro_batch_size), MicroBatches(micro_batch_size)
        self.loss = loss or ImportanceSampling()
        self.optimizer, self.scheduler = optimizer, scheduler
        self.updates_per_rollout, self.minibatches = updates_per_rollout, minibatches
        if minibatches < 1 or updates_per_rollout < 1 or updates_per_rollout % minibatches:
            raise ValueError(
                f"model.minibatches must divide model.updates_per_rollout, both at least 1, got {minibatches} and "
                f"{updates_per_rollout}: each update uses one of them, and each is used equally often."
            )
        if skip_not_finite < 0:
            raise ValueError(f"model.skip_not_finite counts steps, got {skip_not_finite}. 0 stops at the first.")
        if sampler_tolerance is not None and not sampler_tolerance > 0:
            raise ValueError(f"model.sampler_tolerance must be above 0, got {sampler_tolerance}. Rounding is never 0.")
        if mismatch_cap is not None and not mismatch_cap >= 1:
            raise ValueError(f"model.mismatch_cap must be at least 1, got {mismatch_cap}. null corrects nothing.")
        self.skip_not_finite, self.sampler_tolerance = skip_not_finite, sampler_tolerance
        self.mismatch_cap = mismatch_cap
        self.strict_loading = False  # a checkpoint holds the adapter only
        self.needs = set(self.loss.needs)
        self.step_metrics = {}
        self._kept: Rollout | None = None
        self._tokens_per_second: float | None = None
        self.between_steps: list[Callable[[], None]] = []
        self.midstep = self.evaluating = False

    def check(self, trainer: Trainer, task: Task) -> None:
        """Refuse a trainer or data under which credit would see a part of a batch, or a run could not be continued.

        Raises:
            ValueError: with the repair.

        """
        if trainer.accumulate_grad_batches != 1:
            raise ValueError(
                f"trainer.accumulate_grad_batches is {trainer.accumulate_grad_batches}; credit is assigned to "
                "whole batches, so it must be 1. To save memory set model.micro_batch_size instead."
            )
        if isinstance(trainer.strategy, SPLITTING):
            raise ValueError(
                f"trainer.strategy: {type(trainer.strategy).__name__} splits weights; engine, guards and probes want "
                "them whole. Use ddp; where a GPU has too little memory, load the model in fewer bits: "
                "model.policy.quantization 4bit, or model.policy.dtype bfloat16."
            )
        asks = any("oracle" in getattr(callback, "reads", ()) for callback in trainer.callbacks)  # pyright: ignore
        if asks and not isinstance(self.engine, Decoder):
            raise ValueError(
                f"The stack asks an oracle, which continues contexts by given noise, and {type(self.engine).__name__} "
                "answers prompts only. Use model.engine: InProcessEngine, or leave out the operators that ask."
            )
        for asked in task.held_out_sets:
            asked.choose_k(self.pass_k, self.validation.completions)
        prompts, world, updates = task.prompts_per_step, trainer.world_size, self.updates_per_rollout
        if prompts % world:
            raise ValueError(f"data.prompts_per_step is {prompts}, which {world} processes cannot share evenly.")
        if task.train_set and prompts * self.rounds > len(task.train_set):
            raise ValueError(
                f"model.dynamic_sampling may ask {self.rounds} x {prompts} prompts a step, but there are "
                f"{len(task.train_set)} training prompts. Lower its rounds."
            )
        if self.rounds > 1 and self.sampling.completions == 1:
            raise ValueError("model.dynamic_sampling finds no group of one informative. Raise sampling.completions.")
        if (prompts := prompts // world) % self.minibatches:
            raise ValueError(
                f"model.minibatches is {self.minibatches}, which cannot share {prompts} prompts per process evenly."
            )
        if trainer.max_steps > 0 and trainer.max_steps % updates:
            raise ValueError(
                f"trainer.max_steps is {trainer.max_steps} and ends inside a rollout; it counts updates. Choose a "
                f"multiple of model.updates_per_rollout, which is {updates}."
            )
        saved: list[ModelCheckpoint] = trainer.checkpoint_callbacks  # pyright: ignore[reportAssignmentType]
        for saving in saved:
            every = saving._every_n_train_steps
            timed = saving._every_n_epochs or saving._train_time_interval or getattr(saving, "save_on_exception", False)
            if updates > 1 and (timed or not every or every % updates):
                raise ValueError(
                    f"checkpoint.every_n_train_steps is {every or 'not set'}; a checkpoint inside a rollout cannot be "
                    f"continued. Choose a multiple of model.updates_per_rollout, which is {updates}, and no other time."
                )

    def setup(self, stage: str) -> None:
        """Check the trainer once it is attached, and count what is held out."""
        self.check(self.trainer, self._task)
        for asked in self._task.held_out_sets:
            k = asked.choose_k(self.pass_k, self.validation.completions)
            if asked.number == 0:
                self.pass_at_k.k = k
            elif len(self.pass_of_others) < asked.number:
                self.pass_of_others.append(ModuleList([MeanPassAtK(1), MeanPassAtK(k)]))

    def configure_optimizers(self) -> Any:
        """Train the adapter, nothing else."""
        optimizer = self.optimizer([weight for weight in self.policy.parameters() if weight.requires_grad])
        if self.scheduler is None:
            return optimizer
        return [optimizer], [{"scheduler": self.scheduler(optimizer), "interval": "step"}]

    def on_after_batch_transfer(self, batch: PromptBatch, dataloader_idx: int) -> Rollout | PromptBatch:
        """Answer the prompts with the current policy, so that callbacks get a rollout; or return the one kept."""
        if not self.trainer.training:
            return batch
        self.midstep = True  # while a checkpoint is written, signals wait
        for hook in self.between_steps:
            hook()
        self.midstep = False
        update = self.global_step % self.updates_per_rollout
        if update == 0:
            self._kept = self.rollout(batch)
        if self._kept is None:
            raise ValueError(
                f"ckpt_path: the checkpoint was written after step {self.global_step}, inside a rollout of "
                f"{self.updates_per_rollout} updates, which it does not hold. Continue from an earlier one."
            )
        self._kept.update = update
        self.midstep = True
        return self._kept

    def on_validation_start(self) -> None:
        """Note that the last step is whole, and that its evaluation is not."""
        self.midstep, self.evaluating = False, True

    def on_validation_epoch_end(self) -> None:
        """Let signals wait until the evaluation has been recorded."""
        super().on_validation_epoch_end()
        self.midstep = True

    def on_validation_end(self) -> None:
        """Note that the evaluation is whole."""
        self.midstep = self.evaluating = False

    def on_train_end(self) -> None:
        """Note that the last step is whole."""
        super().on_train_end()
        self.midstep = False

    def on_train_batch_start(self, batch: Rollout, batch_idx: int) -> None:
        """Stop the credit clock; Lightning calls this after the hooks of all callbacks."""
        # Validation logs it, and a checkpoint saved before the next validation would be named by it.
        self.trainer.callback_metrics.pop("step", None)
        if batch.update == 0:
            self._lap("time/credit")
        self._clock = self._now()

    def training_step(self, batch: Rollout, batch_idx: int) -> Tensor:
        """Turn the credit in the ledger into a loss."""
        part = self.minibatch(batch)
        scores = self(part)
        part.logprobs = scores.logprobs
        arguments, facts = self.judged_inputs(part, scores, part.advantages)
        loss = self.loss(*arguments, **facts)
        if batch.update == 0:
            self._log({**self.step_metrics, **sampling_metrics(batch)}, len(batch.mask))
        with torch.no_grad():
            reported = self.loss.metrics(*arguments, **facts)
        self._log({"train/loss": loss.detach(), **{f"train/{k}": v for k, v in reported.items()}}, len(part.mask))
        compared = policy_metrics(part, self.scored(part))
        name = type(self.loss).__name__
        self._update = UpdateValues(self.global_step, part, scores.entropy.detach(), loss.detach(), name, compared)
        for name, value in compared.items():
            over_ranks = name.rpartition("_")[2] if name.startswith("train/ratio") else "mean"
            self.log(name, value, reduce_fx=over_ranks, sync_dist=self.trainer.world_size > 1)
        return loss

    def corrected(self, rollout: Rollout, credit: Tensor) -> Tensor:
        r"""Weigh credit by truncated importance sampling, where an engine that is not the trainer drew the tokens.

        .. math:: \min\bigl(\pi_{\mathrm{old}}(o_t) / \mu(o_t),\; C\bigr)\, A_t

        Args:
            rollout: with the engine's log-probabilities, :math:`\log \mu`.
            credit: A, shape ``(B, T)``.

        """
        if rollout.engine_logprobs is None or self.mismatch_cap is None:
            return credit
        return credit * bounded_ratio(rollout.old_logprobs - rollout.engine_logprobs).clamp(max=self.mismatch_cap)

    def minibatch(self, rollout: Rollout) -> Rollout:
        """Return the part of a rollout that its next update uses."""
        return rollout.select_minibatch(rollout.update % self.minibatches, self.minibatches)

    def judged_inputs(
        self, rollout: Rollout, scores: TokenScores, credit: Tensor
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], dict[str, Any]]:
        """Return what the loss is computed from, arguments and facts, without the rows that were not judged.

        An update is the one that would be taken had those completions not been sampled.

        Args:
            rollout: of the mini-batch.
            scores: of the policy that is trained.
            credit: A, shape ``(B, T)``.

        """

        def kept(values: Tensor) -> Tensor:
            return values[rollout.judged.to(values.device)]

        credit = self.corrected(rollout, credit)
        given = self.facts(rollout, scores.entropy)
        facts = {name: kept(value) if isinstance(value, Tensor) else value for name, value in given.items()}
        return (kept(scores.logprobs), kept(rollout.old_logprobs), kept(credit), kept(rollout.mask)), facts

    def facts(self, rollout: Rollout, entropy: Tensor) -> dict[str, Any]:
        """Return what the loss needs besides credit and log-probabilities.

        Args:
            rollout: of the mini-batch.
            entropy: of the policy that is trained, shape ``(B, T)``; with graph if the loss needs one.

        """
        available = {
            "entropy": entropy.detach,
            "entropy_graph": lambda: entropy,
            "old_entropy": lambda: rollout.entropy,
            "ref_logprobs": lambda: rollout.ref_logprobs,
            "update": lambda: rollout.update,
            "token_uniforms": lambda: token_uniforms(
                self.seed, self.global_step, stream_number("loss"), rollout.mask.shape, rollout.group_size
            ),
        }
        return {name: available[name]() for name in self.loss.needs}

    def forward(self, rollout: Rollout) -> TokenScores:
        """Return log pi of the sampled tokens with graph, and the policy's entropy, both ``(B, T)``.

        Rows without advantage have no gradient and keep ``old_logprobs``, unless the loss asks for every row, and rows
        without a verdict keep them always; the others are scored in parts of similar length, so that short completions
        do not pay for the padding of long ones. Micro-batches are computed again in the backward pass; without them all
        parts stay in memory.
        """
        rows = self.scored(rollout).nonzero().squeeze(-1)
        rows = rows[rollout.mask.sum(-1)[rows].argsort(stable=True)]
        width = self._prompts(rollout, rows).shape[1]
        lengths = (rollout.mask.sum(-1)[rows] + width).tolist()
        cut = self.micro_batches.split_batch(lengths, lambda part: self._tried(rollout, rows[part]))
        scored = [self._recomputed(rollout, rows[part]) for part in cut] if len(cut) > 1 else self._whole(rollout, rows)
        logprobs, entropy = zip(*scored, strict=True)
        return TokenScores(
            rollout.old_logprobs.index_copy(0, rows, torch.cat(logprobs)),
            rollout.entropy.index_copy(0, rows, torch.cat(entropy)),
        )

    def _whole(self, rollout: Rollout, rows: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Score rows of ascending length, every prompt read once."""
        with self.policy.merge_for_gradients():
            context = self.policy.read_prompts(self._prompts(rollout, rows))
            cut = split_rows_by_tokens(rollout.mask.sum(-1)[rows].tolist(), TOKENS)
            return [self._scored(rollout, rows[part], context.select_rows(part)) for part in cut]

    def _tried(self, rollout: Rollout, rows: Tensor) -> None:
        """Compute the gradient of some rows and discard it, to find out whether memory suffices."""
        scored = torch.cat([logprobs.flatten() for logprobs, _ in self._whole(rollout, rows)])
        torch.autograd.grad(scored.sum(), list(self.learned.values()), allow_unused=True)

    def scored(self, rollout: Rollout) -> Tensor:
        """Return the rows that are scored, shape ``(B,)`` bool: judged ones, or else the first."""
        scored = (rollout.credited_rows() | self.loss.every_row) & rollout.judged
        scored[0] |= ~scored.any()  # the optimizer needs a graph, even of a gradient that is zero
        return scored

    def _prompts(self, rollout: Rollout, rows: Tensor) -> Tensor:
        """Return the prompts of some rows, free of columns that are padding in all of them."""
        prompt_ids = rollout.prompt_ids[rows]
        return prompt_ids[:, self.policy.prompt_mask(prompt_ids).any(0)]

    def _scored(self, rollout: Rollout, rows: Tensor, context: PromptContext) -> tuple[Tensor, Tensor]:
        """Score some rows behind their prompts, free of columns that are padding in all of them."""
        width = int(rollout.mask[rows].sum(-1).max())
        scores = self.policy.score_completions(context, rollout.completion_ids[rows, :width], self.sampling.temperature)
        padding = (0, rollout.mask.shape[1] - width)
        entropy = scores.entropy if "entropy_graph" in self.loss.needs else scores.entropy.detach()
        return pad(scores.logprobs, padding), pad(entropy, padding)

    def _recomputed(self, rollout: Rollout, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Score some rows, and once more in the backward pass."""

        def scored(prompt_ids: Tensor) -> tuple[Tensor, Tensor]:
            with self.policy.merge_for_gradients():
                return self._scored(rollout, rows, self.policy.read_prompts(prompt_ids))

        return checkpoint(scored, self._prompts(rollout, rows), use_reentrant=False)  # pyright: ignore[reportReturnType]

    def on_train_batch_end(self, outputs: Any, batch: Rollout, batch_idx: int) -> None:
        """Log what the update cost and, after the last one, how many tokens a second of the whole step was worth."""
        spent = self.step_metrics.pop("time/update", 0.0)
        self._lap("time/update")
        self._log({"time/update": self.step_metrics["time/update"]}, len(batch.mask))
        self.step_metrics["time/update"] += spent
        if batch.update + 1 == self.updates_per_rollout:
            seconds = sum(value for name, value in self.step_metrics.items() if name.startswith("time/"))
            tokens = batch.mask.sum().item() * self.trainer.world_size
            self._tokens_per_second = tokens / seconds
            self._kept = None
        if self._tokens_per_second is not None:  # of the last whole rollout, also beside updates of the next
            self._log({"train/tokens_per_second": self._tokens_per_second}, len(batch.mask))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the adapter only; the base weights have not changed."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["tokens_per_second"] = self._tokens_per_second
        checkpoint["micro_batch_tokens"] = self.micro_batches.limit
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in self.learned}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse an adapter of another shape; loading is not strict, and would pass over it.

        Raises:
            ValueError: with the weights that do not fit.

        """
        super().on_load_checkpoint(checkpoint)
        self._tokens_per_second = checkpoint.get("tokens_per_second")
        self.micro_batches.limit = checkpoint.get("micro_batch_tokens")
        learned = {name: weight.shape for name, weight in self.learned.items()}
        saved = {name: weight.shape for name, weight in checkpoint["state_dict"].items()}
        if differing := sorted(name for name in learned.keys() | saved.keys() if learned.get(name) != saved.get(name)):
            raise ValueError(
                f"The checkpoint holds another adapter: {len(differing)} weights differ, {differing[0]} first. "
                "Use the model.policy.lora it was trained with."
            )
