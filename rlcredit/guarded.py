"""The part of the LightningModule that stops, or passes over a step, where numbers are none."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rlcredit.artifacts import folder
from rlcredit.exits import Ended, NotFinite
from rlcredit.faults import Update, rollout_fault, weight_fault
from rlcredit.functional.finite import first_not_finite, total_norm
from rlcredit.functional.processes import anywhere, first_given
from rlcredit.postmortem import kept, postmortem
from rlcredit.rollout import Rollout
from rlcredit.sampler import Sampler
from rlcredit.tasks.base import Prompts

EXACT = 0.01
"""Default of ``sampler_tolerance`` in float32: ten times what no token exceeds, ten thousand times the usual."""

ROUNDED = 0.2
"""In fewer bits, or with quantized weights: twice what rounding does to the worst of tokens, in the mean of all."""


class Guarded(Sampler):
    """Take no update from numbers that are not finite, keep none, and none from data that another policy sampled.

    Attributes:
        skip_not_finite: as :class:`rlcredit.module.PolicyModule` has it.
        sampler_tolerance: likewise.
        skipped: whether the last step was passed over.
        skipped_in_a_row: how many were, up to it.

    """

    skip_not_finite: int = 0
    sampler_tolerance: float | None = None
    skipped: bool = False
    skipped_in_a_row: int = 0
    _update: Update | None = None

    @property
    def learned(self) -> dict[str, Tensor]:
        """The weights that learn, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    @property
    def tolerance(self) -> float:
        """How far from one the ratio of a token on policy may lie, as a root mean square."""
        if self.sampler_tolerance is not None:
            return self.sampler_tolerance
        whole = self.policy.dtype == "float32" and self.policy.quantization is None
        exact = self.trainer.precision == "32-true" and torch.get_float32_matmul_precision() == "highest"
        return EXACT if whole and exact else ROUNDED

    @contextlib.contextmanager
    def guarded(self, rollout: Rollout) -> Iterator[None]:
        """Keep the batch if numbers are found not to be finite, and stop all processes; all of them must come here.

        Raises:
            Ended: with the sentence of the first process that found something.

        """
        fault = None
        try:
            yield
        except NotFinite as error:
            fault = error
        self._settle(fault, rollout)

    def _settle(self, fault: Ended | None, rollout: Rollout, **known: Any) -> None:
        """Stop all processes if one has a fault; each keeps its own batch."""
        if not anywhere(fault is not None, self.device):
            return
        step, rank = self.global_step, self.trainer.global_rank
        content = postmortem(rollout, {"step": step, "rank": rank, "message": str(fault or ""), **known})
        where = kept(folder(self.trainer), step, rank, content)
        raise first_given(fault and type(fault)(f"{fault} {where}"))

    def _round(self, prompts: Prompts, prompt_ids: Tensor, solved: list[Tensor]) -> Rollout:
        """Sample and judge once."""
        rollout = super()._round(prompts, prompt_ids, solved)
        self._settle(rollout_fault(rollout), rollout)
        return rollout

    def rollout(self, prompts: Prompts) -> Rollout:
        """Answer prompts, and have the answers judged and scored by the reference if somebody wants to know."""
        rollout = super().rollout(prompts)
        if rollout.ref_logprobs is not None:
            self._settle(rollout_fault(rollout), rollout)
        return rollout

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the gradient norm before Lightning clips it; drop gradients, or stop, where something is wrong."""
        update, learned = self._update, self.learned
        assert update is not None
        update.norm = total_norm([weight.grad for weight in learned.values() if weight.grad is not None])
        tolerance = self.tolerance if update.rollout.update == 0 else torch.inf
        # A scaler of half-precision gradients skips steps that overflow; without one, nothing may.
        fault = update.fault(learned, self.trainer.precision == "16-mixed", tolerance)
        if not self._passed_over(fault):
            if fault and self.skipped:
                fault = NotFinite(f"{fault} Steps in a row that were not finite: {self.skipped_in_a_row}.")
            self._settle(fault, update.rollout, **(update.known(learned) if fault else {}))
        self._log({"train/gradient_norm": update.norm}, 1)

    def _passed_over(self, fault: Ended | None) -> bool:
        """Drop the gradients if this step may be skipped: an optimizer leaves alone what has none."""
        if not self.skip_not_finite:
            return False
        self.skipped = anywhere(isinstance(fault, NotFinite), self.device)
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if self.skipped else 0
        self._log({"train/skipped": float(self.skipped)}, 1)
        if not self.skipped or self.skipped_in_a_row >= self.skip_not_finite:
            return False
        for weight in self.learned.values():
            weight.grad = None
        return True

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step, and look at the weights before anybody saves them."""
        super().optimizer_step(*args, **kwargs)
        update, self._update = self._update, None
        assert update is not None
        after = f"the optimizer step ({type(self.trainer.optimizers[0]).__name__})"
        # Processes hold the same weights: all of them come here, or none.
        if fault := weight_fault(update.step, self.learned, after):
            self._settle(fault, update.rollout, **update.known(self.learned))

    def lr_scheduler_step(self, scheduler: Any, metric: Any | None) -> None:
        """Step the learning rate with the weights; a step that is passed over is none."""
        if not self.skipped:
            super().lr_scheduler_step(scheduler, metric)

    def on_train_end(self) -> None:
        """Refuse weights that are not finite before the adapter is written."""
        if fault := weight_fault(self.global_step, self.learned, "training"):
            raise fault

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse to save what is not finite; note how many steps have been passed over.

        Raises:
            NotFinite: with the first weight, or moment of a weight.

        """
        names = list(self.learned)
        moments = (
            (f"{moment} of {names[place]}", value)
            for state in checkpoint.get("optimizer_states", [])
            for place, each in state["state"].items()
            for moment, value in each.items()
            if isinstance(value, Tensor)
        )
        if first := first_not_finite([*self.learned.items(), *moments]):
            raise NotFinite(
                f"Step {self.global_step}: {first} is not finite. No such checkpoint is written; earlier ones are as "
                "they were."
            )
        if self.skip_not_finite:
            checkpoint["skipped_in_a_row"] = self.skipped_in_a_row

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on counting the steps that are passed over."""
        self.skipped_in_a_row = checkpoint.get("skipped_in_a_row", 0)
