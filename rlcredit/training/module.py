"""The LightningModule: collect a rollout, let the stack assign credit, take a loss, record. It knows no operator."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from rlcredit.base.exit_status import NotFinite, RunStopped
from rlcredit.base.lightning_private import read_callbacks, read_datamodule
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.decoding.engine import Decoder, Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.formulas.distributed import (
    is_set_anywhere,
)
from rlcredit.losses import ImportanceSampling, PolicyLoss
from rlcredit.policy.policy import Policy
from rlcredit.tasks.task import PromptBatch, Task
from rlcredit.training.checkpoint import fill_checkpoint, restore_checkpoint
from rlcredit.training.collector import RolloutCollector, repeat_examples
from rlcredit.training.dynamic_sampling import DynamicSampling
from rlcredit.training.held_out_evaluation import HeldOutEvaluator
from rlcredit.training.metrics import episode_metrics, policy_metrics, sampling_metrics
from rlcredit.training.micro_batches import MicroBatches, Size
from rlcredit.training.nan_and_mismatch import UpdateValues, find_weight_fault, trainable_weights
from rlcredit.training.postmortem import stop_on_fault, stop_on_not_finite
from rlcredit.training.sampling_ahead import AskedPrompts, SamplingAhead
from rlcredit.training.scored_samples import ROUNDED_TOLERANCE, choose_tolerance
from rlcredit.training.scoring import (
    RolloutScorer,
    UpdateScores,
    list_update_sequences,
    number_update_sequences,
)
from rlcredit.training.setup_checks import refuse_unfit_settings, refuse_unfit_setup
from rlcredit.training.step_state import Phase, StepState
from rlcredit.training.update_loss import UpdateLoss


class PolicyModule(LightningModule):
    """Sample with the policy, let the stack assign credit, and take one or more steps along it.

    A step goes through four hooks of Lightning: :meth:`on_after_batch_transfer` collects a rollout,
    :class:`rlcredit.credit.stack.CreditStack` assigns credit in ``on_train_batch_start``, :meth:`training_step` returns
    the loss, and :meth:`on_before_optimizer_step` checks the update.

    Args:
        policy: The language model that is sampled and trained.
        sampling: How a training rollout is drawn; its temperature is the policy's in every forward pass.
        validation: How held-out questions are answered.
        pass_k: The k of ``val/pass_at_k``.
        validation_seed: Seed for sampling held-out answers. One number for all runs pairs them; with None it is the
            run's own seed, and an interval over seeds holds for new draws too.
        engine: What decodes completions. An oracle continues partial answers with it, or in this process if it cannot.
        dynamic_sampling: How groups that teach nothing are replaced; they are kept if None.
        loss: What turns credit into a scalar; importance sampling if None.
        optimizer: Optimizer of the adapter weights.
        scheduler: Schedule of the learning rate, stepped after every update; constant if None.
        updates_per_rollout: Optimizer steps taken with one rollout and its credit. ``global_step``, and whatever is
            counted in steps, counts updates; what operators average over batches counts rollouts. Metrics of a rollout
            stand beside each of its updates.
        minibatches: Parts into which the prompts of a rollout are cut; every update uses the next one. Divides
            ``updates_per_rollout``.
        micro_batch_tokens: Tokens of prompts and completions that an update computes at a time; with ``auto`` as many
            as memory is forecast to hold, corrected by what the first update takes on a GPU. It changes memory only.
        seed: Seed of the adapter's first weights and of the sampling noise.
        skip_not_finite: A step whose loss or gradient is not finite changes nothing and is counted in
            ``train/skipped``; this many of them in a row stop the run. 0 and 1 stop it at the first.
        sampler_tolerance: How far from one the importance ratio of a token may lie in the first update of a rollout, as
            a root mean square, and how far an engine's log-probabilities from the trainer's; beyond it the run stops.
            If None, 0.01 in float32 and 0.2 in fewer bits; ``inf`` never stops.
        mismatch_cap: Largest weight of a token that the trainer finds more probable than the engine that drew it did;
            see :meth:`rlcredit.training.update_loss.UpdateLoss.correct_engine_mismatch`. Nothing is corrected if None.

    Attributes:
        keeps_engine: Whether the engine is used again after the present loop.
        between_steps: Functions called before prompts are answered, when everything of the step before has been logged
            and evaluated and nothing of the next has begun.
        state: Where the run stands in its step, and what it has measured of it.
        sampling_ahead: What answers training prompts if the engine decodes ahead; else None.
        needs: Optional facts of a rollout that operators or the loss read.

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
        micro_batch_tokens: Size = "auto",
        seed: int = 0,
        skip_not_finite: int = 0,
        sampler_tolerance: float | None = None,
        mismatch_cap: float | None = 2.0,
    ) -> None:
        super().__init__()
        self.policy = policy or Policy()
        self.sampling = sampling or Sampling()
        self.validation = validation or Sampling(completions=4)
        self.engine = engine or InProcessEngine()
        self.decoder = self.engine if isinstance(self.engine, Decoder) else InProcessEngine()
        self.dynamic_sampling = dynamic_sampling
        self.loss = loss or ImportanceSampling()
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.updates_per_rollout = updates_per_rollout
        self.minibatches = minibatches
        self.micro_batches = MicroBatches(micro_batch_tokens)
        self.scoring_batches = MicroBatches(micro_batch_tokens)
        self.seed = seed
        self.skip_not_finite = skip_not_finite
        self.sampler_tolerance = sampler_tolerance
        self.mismatch_cap = mismatch_cap
        self.pass_k = pass_k
        refuse_unfit_settings(self)
        self.evaluator = HeldOutEvaluator(self.validation, pass_k, seed if validation_seed is None else validation_seed)
        self.strict_loading = False  # a checkpoint holds the adapter only
        self.needs: set[str] = set(self.loss.needs)
        self.state = StepState()
        self.sampling_ahead: SamplingAhead | None = None
        self.between_steps: list[Callable[[], None]] = []
        self.keeps_engine = False

    @property
    def rounds(self) -> int:
        """Number of batches of prompts that a rollout may ask."""
        return self.dynamic_sampling.rounds if self.dynamic_sampling else 1

    @property
    def task(self) -> Task:
        """The questions of the run."""
        return read_datamodule(self.trainer)

    @property
    def scorer(self) -> RolloutScorer:
        """Scorer of sampled tokens."""
        keeps_graph = "entropy_graph" in self.loss.needs
        temperature = self.sampling.temperature
        return RolloutScorer(self.policy, temperature, self.micro_batches, self.scoring_batches, keeps_graph)

    @property
    def collector(self) -> RolloutCollector:
        """Collector of rollouts, or in validation of held-out answers, which are never drawn ahead."""
        answerer = self.sampling_ahead if self.trainer.training else None
        return RolloutCollector(
            trainer=self.trainer,
            policy=self.policy,
            engine=answerer or self.engine,
            decoder=self.decoder,
            scorer=self.scorer,
            sampling=self.sampling,
            seed=self.seed,
            dynamic_sampling=self.dynamic_sampling,
            needs=self.needs,
            tolerance=self.ratio_tolerance,
        )

    @property
    def update_loss(self) -> UpdateLoss:
        """Loss of the next update."""
        return UpdateLoss(self.loss, self.mismatch_cap, self.seed, self.global_step)

    @property
    def ratio_tolerance(self) -> float:
        """Tolerated distance of the on-policy ratio from one, as a root mean square over tokens."""
        if self.sampler_tolerance is not None:
            return self.sampler_tolerance
        return choose_tolerance(self.policy) if self.trainer.precision == "32-true" else ROUNDED_TOLERANCE

    def configure_model(self) -> None:
        """Read the weights, after everything that can be checked without them."""
        self.policy.load(self.seed)

    def configure_callbacks(self) -> Sequence[Callback]:
        """Insert a callback that assigns credit by all operators, before the first of them; add an EngineCloser."""
        callbacks = read_callbacks(self.trainer)
        CreditStack.insert_into(callbacks)
        if not any(isinstance(callback, EngineCloser) for callback in callbacks):
            callbacks.append(EngineCloser())
        return []

    def configure_optimizers(self) -> Any:
        """Train the adapter, nothing else."""
        optimizer = self.optimizer([weight for weight in self.policy.parameters() if weight.requires_grad])
        is_free = self.device.type == "cuda" and not optimizer.state  # whose state is made at the first step
        for group in optimizer.param_groups if is_free else ():
            if group.get("fused", True) is None and not group.get("foreach") and not group.get("differentiable"):
                group["fused"] = True  # two operations for all weights
        if self.scheduler is None:
            return optimizer
        return [optimizer], [{"scheduler": self.scheduler(optimizer), "interval": "step"}]

    def setup(self, stage: str) -> None:
        """Check the trainer once it is attached, and count what is held out."""
        refuse_unfit_setup(self, self.trainer, self.task)
        if self.engine.ahead:
            self.sampling_ahead = SamplingAhead(self.engine, self.encode_prompts_of, self.updates_per_rollout)
        self.evaluator.add_metrics(self.task)

    def teardown(self, stage: str) -> None:
        """Release the engine's resources, unless training follows an evaluation."""
        if not self.keeps_engine:
            self.engine.close()

    def encode_prompts_of(self, step: int) -> AskedPrompts | None:
        """Return this process's prompts of a step; None if it is beyond ``trainer.max_steps``.

        Every process must call it.
        """
        if 0 <= self.trainer.max_steps <= step:
            return None
        prompts = self.task.draw_prompts(step)
        episodes = self.task.open_episodes(self.policy, repeat_examples(prompts, self.sampling.completions))
        return AskedPrompts(prompts.numbers, self.collector.encode(prompts), episodes)

    def on_after_batch_transfer(self, batch: PromptBatch, dataloader_idx: int) -> Rollout | PromptBatch:
        """Collect a rollout, so that callbacks get one; later updates of a rollout get the same one again."""
        if not self.trainer.training:
            return batch
        self.state.phase = Phase.SAVING  # while a checkpoint is written, signals wait
        for hook in self.between_steps:
            hook()
        self.state.phase = Phase.SAMPLING
        update = self.global_step % self.updates_per_rollout
        if update == 0:
            self.state.rollout, self.state.metrics = self.collector.collect(batch, self.global_step)
            self.state.start_lap(self.device)
        if self.state.rollout is None:
            raise ValueError(
                f"ckpt_path: the checkpoint was written after step {self.global_step}, inside a rollout of "
                f"{self.updates_per_rollout} updates, which it does not hold. Continue from an earlier one."
            )
        self.state.rollout.update = update
        self.state.phase = Phase.UPDATING
        return self.state.rollout

    def stop_on_not_finite(self, rollout: Rollout) -> AbstractContextManager[None]:
        """Stop all processes where credit turns out not to be finite; see :mod:`rlcredit.training.postmortem`."""
        return stop_on_not_finite(self.trainer, rollout)

    def on_train_batch_start(self, batch: Rollout, batch_idx: int) -> None:
        """End the time that credit took; Lightning calls this after the hooks of all callbacks."""
        # Validation logs it, and a checkpoint saved before the next validation would be named by it.
        self.trainer.callback_metrics.pop("step", None)
        if batch.update == 0:
            self.state.end_lap("time/credit", self.device)
        else:
            self.state.start_lap(self.device)

    def training_step(self, batch: Rollout, batch_idx: int) -> Tensor:
        """Turn the credit in the ledger into a loss."""
        part, update_loss = self.select_minibatch(batch), self.update_loss
        rows = self.rows_to_score(part)
        row_numbers = rows.nonzero().squeeze(-1)
        if batch.update == 0:
            played_metrics = episode_metrics(batch) if self.task.environment is not None else {}
            self._log_metrics({**self.state.metrics, **sampling_metrics(batch), **played_metrics}, len(batch.mask))
        # From here to the gradients the host waits for the device nowhere.
        update_loss.find_judged_rows(part)
        # Gradients of half precision are scaled in the backward pass, which must not be over by then.
        scores, loss = self.scorer.score_with_loss(
            part,
            row_numbers,
            lambda scores: update_loss.compute_loss(part, scores, part.credit),
            is_separate=self.loss.row_wise and not self.policy.is_sharded and self.trainer.precision != "16-mixed",
        )
        part.logprobs = scores.logprobs
        loss_metrics = update_loss.compute_metrics(part, scores)
        self.state.update = UpdateValues(
            step=self.global_step,
            rollout=part,
            entropy=scores.entropy.detach(),
            loss=loss.detach(),
            loss_name=type(self.loss).__name__,
            rows=rows,
        )
        self._log_metrics(
            {"train/loss": loss.detach(), **{f"train/{name}": value for name, value in loss_metrics.items()}},
            len(part.mask),
        )
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        self.log("train/learning_rate", torch.tensor(rate, dtype=torch.float64), batch_size=1)
        return loss

    def forward(self, rollout: Rollout) -> UpdateScores:
        """Return log pi of tokens with graph, and the policy's entropy.

        Rows without advantage have no gradient and keep ``old_logprobs``, unless the loss asks for every row, and rows
        without a verdict keep them always.
        """
        return self.scorer.score_for_update(rollout, self.rows_to_score(rollout).nonzero().squeeze(-1))

    def select_minibatch(self, rollout: Rollout) -> Rollout:
        """Return the part of a rollout that its next update uses."""
        return rollout.select_minibatch(rollout.update % self.minibatches, self.minibatches)

    def rows_to_score(self, rollout: Rollout) -> Tensor:
        """Return the rows that are scored, shape ``(B,)`` bool: judged ones, or else the first."""
        rows = (rollout.credit.credited_rows(rollout.mask) | self.loss.every_row) & rollout.judged
        rows[0] |= ~rows.any()  # the optimizer needs a graph, even of a gradient that is zero
        return rows

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log ratios and the gradient norm before clipping; drop the gradients or stop if something is wrong."""
        update, weights = self.state.update, trainable_weights(self)
        assert update is not None
        self._measure_update(update)
        update.gradient_norm = get_total_norm([weight.grad for weight in weights.values() if weight.grad is not None])
        tolerance = self.ratio_tolerance if update.rollout.update == 0 else torch.inf
        # A scaler of half-precision gradients skips steps that overflow; without one, an overflow is a fault.
        fault = update.find_fault(weights, self.trainer.precision == "16-mixed", tolerance)
        if not self._skip_update(fault):
            if fault and self.state.skipped:
                fault = type(fault)(f"{fault} Steps in a row that were not finite: {self.state.skipped_in_a_row}.")
            details = update.summarise_gradients(weights) if fault else {}
            stop_on_fault(self.trainer, fault, update.rollout, **details)
        self._log_metrics({"train/gradient_norm": update.gradient_norm}, 1)
        for kind, tokens in self.state.add_tokens(update.rollout.token_counts, self.device).items():
            # Float64 holds whole numbers up to 2^53; Lightning would turn an integer into float32, which ends at 2^24.
            total = torch.tensor(tokens, dtype=torch.float64)
            self.log(f"tokens/{kind}", total, batch_size=1, add_dataloader_idx=False)

    def _measure_update(self, update: UpdateValues) -> None:
        """Count the tokens of an update, and log how far the policy is from the one that sampled."""
        part = update.rollout
        sequences = number_update_sequences(part, update.rows.nonzero().squeeze(-1))
        part.token_counts.add(backward=list_update_sequences(part).count_tokens(sequences))
        update.metrics = policy_metrics(part, update.rows)
        for name, value in update.metrics.items():
            over_ranks = name.rpartition("_")[2] if name.startswith("train/ratio") else "mean"
            self.log(name, value, reduce_fx=over_ranks, sync_dist=self.trainer.world_size > 1)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip as Lightning does, by the norm that is known from :meth:`on_before_optimizer_step`."""
        assert self.state.update is not None
        norm, weights = self.state.update.gradient_norm, trainable_weights(self).values()
        is_plain = self.trainer.precision != "16-mixed" and gradient_clip_algorithm in (None, "norm")
        if not gradient_clip_val or not is_plain or norm is None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
        else:
            clip_grads_with_norm_(weights, gradient_clip_val, norm)

    def _skip_update(self, fault: RunStopped | None) -> bool:
        """Drop the gradients if this step may be skipped: an optimizer does not change weights without one."""
        if not self.skip_not_finite:
            return False
        state = self.state
        state.skipped = is_set_anywhere(isinstance(fault, NotFinite), self.device)
        state.skipped_in_a_row = state.skipped_in_a_row + 1 if state.skipped else 0
        self._log_metrics({"train/skipped": float(state.skipped)}, 1)
        if not state.skipped or state.skipped_in_a_row >= self.skip_not_finite:
            return False
        for weight in trainable_weights(self).values():
            weight.grad = None
        return True

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step the optimizer, and check the weights before they can be saved."""
        super().optimizer_step(*args, **kwargs)
        update, weights = self.state.update, trainable_weights(self)
        self.state.update = None
        assert update is not None
        change = f"the optimizer step ({type(self.trainer.optimizers[0]).__name__})"
        # Processes hold the same weights: all of them come here, or none.
        if fault := find_weight_fault(update.step, weights, change):
            stop_on_fault(self.trainer, fault, update.rollout, **update.summarise_gradients(weights))

    def lr_scheduler_step(self, scheduler: Any, metric: Any | None) -> None:
        """Step the learning rate with the weights; a skipped step does not count."""
        if not self.state.skipped:
            super().lr_scheduler_step(scheduler, metric)

    def on_train_batch_end(self, outputs: Any, batch: Rollout, batch_idx: int) -> None:
        """Log the cost of the update and, after the last one, the tokens per second of the whole step."""
        self._log_metrics({"time/update": self.state.end_update(self.device)}, len(batch.mask))
        if batch.update + 1 == self.updates_per_rollout:
            self.state.end_rollout(batch.mask.sum().item() * self.trainer.world_size)
        if self.state.tokens_per_second is not None:  # of the last whole rollout, also beside updates of the next
            self._log_metrics({"train/tokens_per_second": self.state.tokens_per_second}, len(batch.mask))

    def on_train_end(self) -> None:
        """Refuse weights that are not finite before the adapter is written."""
        if fault := find_weight_fault(self.global_step, trainable_weights(self), "training"):
            raise fault
        self.state.phase = Phase.BETWEEN_STEPS

    def on_validation_start(self) -> None:
        """Record that the last step is complete, and that its evaluation is not."""
        self.state.phase = Phase.EVALUATING

    def on_validation_epoch_start(self) -> None:
        """Learn how many more held-out batches than this process another has, if every pass is an exchange."""
        if self.policy.is_sharded:
            self.evaluator.compare_batch_counts(list(map(int, self.trainer.num_val_batches)), self.device)

    def validation_step(self, batch: PromptBatch, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        """Answer held-out questions, and log what is right; return it, shape ``(P, G)``."""
        held_out_set = self.task.held_out_sets[dataloader_idx]
        right, metrics = self.evaluator.evaluate_batch(self.collector, held_out_set, batch, self.global_step)
        pass_metrics = self.evaluator.find_pass_metrics(held_out_set)
        self.log_dict(
            {held_out_set.name_metric(name): metric for name, metric in pass_metrics.items()},
            batch_size=len(right),
            add_dataloader_idx=False,
        )
        if dataloader_idx == 0:  # the step at which Lightning logs the results; one loader of several says it
            self._log_metrics({"step": float(self.global_step)}, len(right))
        self._log_metrics(metrics, len(right))
        return {"right": right}

    def on_validation_batch_end(
        self, outputs: Any, batch: PromptBatch, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Score as often as the processes with most held-out questions do, if every pass is an exchange."""
        if self.policy.is_sharded:
            self.evaluator.make_spare_passes(self.collector, self.task, dataloader_idx, batch_idx)

    def on_validation_epoch_end(self) -> None:
        """Stop all processes if one has a fault, once all have finished; else let signals wait for the record."""
        self.evaluator.raise_fault(self.device)
        self.state.phase = Phase.RECORDING_EVALUATION

    def on_validation_end(self) -> None:
        """Record that the evaluation is complete."""
        self.state.phase = Phase.BETWEEN_STEPS

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save only the adapter; refuse values that are not finite."""
        fill_checkpoint(self, checkpoint)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the state of the run; refuse values that are not finite, and an adapter of another shape."""
        restore_checkpoint(self, checkpoint)

    def _log_metrics(self, metrics: dict[str, Any], batch_size: int) -> None:
        sync_dist = self.trainer.world_size > 1
        self.log_dict(metrics, batch_size=batch_size, sync_dist=sync_dist, add_dataloader_idx=False)


class EngineCloser(Callback):
    """Release the engine's resources if an exception or a signal ends a run: Lightning then calls no ``teardown``."""

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Release them."""
        cast("PolicyModule", pl_module).engine.close()
