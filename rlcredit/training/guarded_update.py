"""The part of the LightningModule that stops at an update with a fault, or skips it."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from rlcredit.base.exit_status import NotFinite, PolicyMismatch, RunStopped
from rlcredit.credit.rollout import Rollout, evenly_spaced_rows
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.formulas.distributed import is_set_anywhere
from rlcredit.formulas.masked import masked_mean
from rlcredit.tasks.task import PromptBatch
from rlcredit.training.checks import UpdateValues, find_engine_fault, find_weight_fault
from rlcredit.training.guarded import GuardedSampler

EXACT = 0.01
"""Default of ``sampler_tolerance`` in float32: ten times a bound that no single token exceeds. The embedded policy
shows 4e-7, and a small GPT-2 with a dropout of a tenth 0.07."""

ROUNDED = 0.2
"""In fewer bits, or with quantized weights: twice the rounding error of the worst token, as if every token had it.
The embedded policy shows 0.005 in bfloat16. Only gross mistakes are found: another temperature, other weights."""

CANARIES = 8
"""Completions of each rollout that the trainer also scores without its adapter, if the engine is another."""


class GuardedUpdate(GuardedSampler):
    """Take no update from numbers that are not finite, and none from data that another policy sampled.

    Attributes:
        skip_not_finite: as :class:`rlcredit.training.module.PolicyModule` has it.
        sampler_tolerance: likewise.
        skipped: whether the last step was passed over.
        skipped_in_a_row: how many were, up to it.

    """

    skip_not_finite: int = 0
    sampler_tolerance: float | None = None
    skipped: bool = False
    skipped_in_a_row: int = 0
    _update: UpdateValues | None = None
    _engine_fault: PolicyMismatch | None = None

    @property
    def tolerance(self) -> float:
        """How far from one the ratio of a token on policy may lie, as a root mean square."""
        if self.sampler_tolerance is not None:
            return self.sampler_tolerance
        full_precision = self.policy.dtype == "float32" and self.policy.quantization is None
        exact_arithmetic = self.trainer.precision == "32-true" and torch.get_float32_matmul_precision() == "highest"
        return EXACT if full_precision and exact_arithmetic else ROUNDED

    def _sampled(self, prompts: PromptBatch, prompt_ids: Tensor, sampling: Sampling, seed: int, step: int) -> Samples:
        """Sample, and remember whether an engine that is not the trainer drew from the trainer's weights."""
        samples = super()._sampled(prompts, prompt_ids, sampling, seed, step)
        if samples.engine_logprobs is not None:
            self._engine_fault = self._canary(prompt_ids, samples, sampling)
            if not self.trainer.training:
                self._held_out_fault = self._held_out_fault or self._engine_fault
        return samples

    def _canary(self, prompt_ids: Tensor, samples: Samples, sampling: Sampling) -> PolicyMismatch | None:
        """Compare the engine's log-probabilities with the trainer's, with its adapter and without."""
        rows = torch.tensor(evenly_spaced_rows(len(samples.mask), CANARIES), device=self.device)
        engine_logprobs, mask = samples.engine_logprobs, samples.mask
        prompts, completions = prompt_ids[rows // sampling.completions], samples.completion_ids[rows]
        base = self.scores(prompts, completions, mask[rows], sampling.temperature, adapter=False)
        assert engine_logprobs is not None
        distance = _logprob_distance(engine_logprobs, samples.logprobs, mask)
        with_adapter = _logprob_distance(engine_logprobs[rows], samples.logprobs[rows], mask[rows])
        without_adapter = _logprob_distance(engine_logprobs[rows], base.logprobs, mask[rows])
        return find_engine_fault(self.global_step, distance, with_adapter, without_adapter, self.tolerance)

    def _round(self, prompts: PromptBatch, prompt_ids: Tensor, solved: list[Tensor]) -> Rollout:
        """Sample and judge once; stop if an engine drew from other weights."""
        rollout = super()._round(prompts, prompt_ids, solved)
        if rollout.engine_logprobs is not None:
            self._settle(self._engine_fault, rollout)
        return rollout

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the gradient norm before Lightning clips it; drop gradients, or stop, where something is wrong."""
        update, learned = self._update, self.learned
        assert update is not None
        update.norm = get_total_norm([weight.grad for weight in learned.values() if weight.grad is not None])
        tolerance = self.tolerance if update.rollout.update == 0 else torch.inf
        # A scaler of half-precision gradients skips steps that overflow; without one, an overflow is a fault.
        fault = update.find_fault(learned, self.trainer.precision == "16-mixed", tolerance)
        if not self._passed_over(fault):
            if fault and self.skipped:
                fault = type(fault)(f"{fault} Steps in a row that were not finite: {self.skipped_in_a_row}.")
            self._settle(fault, update.rollout, **(update.summarise_gradients(learned) if fault else {}))
        self._log({"train/gradient_norm": update.norm}, 1)

    def _passed_over(self, fault: RunStopped | None) -> bool:
        """Drop the gradients if this step may be skipped: an optimizer does not change weights without one."""
        if not self.skip_not_finite:
            return False
        self.skipped = is_set_anywhere(isinstance(fault, NotFinite), self.device)
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if self.skipped else 0
        self._log({"train/skipped": float(self.skipped)}, 1)
        if not self.skipped or self.skipped_in_a_row >= self.skip_not_finite:
            return False
        for weight in self.learned.values():
            weight.grad = None
        return True

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step, and check the weights before they can be saved."""
        super().optimizer_step(*args, **kwargs)
        update, self._update = self._update, None
        assert update is not None
        after = f"the optimizer step ({type(self.trainer.optimizers[0]).__name__})"
        # Processes hold the same weights: all of them come here, or none.
        if fault := find_weight_fault(update.step, self.learned, after):
            self._settle(fault, update.rollout, **update.summarise_gradients(self.learned))

    def lr_scheduler_step(self, scheduler: Any, metric: Any | None) -> None:
        """Step the learning rate with the weights; a skipped step does not count."""
        if not self.skipped:
            super().lr_scheduler_step(scheduler, metric)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Note how many steps in a row have been passed over."""
        super().on_save_checkpoint(checkpoint)
        if self.skip_not_finite:
            checkpoint["skipped_in_a_row"] = self.skipped_in_a_row

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Continue the count of skipped steps."""
        super().on_load_checkpoint(checkpoint)
        self.skipped_in_a_row = checkpoint.get("skipped_in_a_row", 0)


def _logprob_distance(engine: Tensor, scored: Tensor, mask: Tensor) -> float:
    """Return the root mean square of the difference over tokens, nats."""
    return masked_mean((engine - scored).square(), mask).sqrt().item()
