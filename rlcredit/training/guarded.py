"""The part of the LightningModule that stops a run at NaN or infinity, and saves neither."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from rlcredit.base.exit_status import NotFinite, RunStopped
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.sampling import Samples
from rlcredit.formulas.distributed import is_set_anywhere, share_first_value
from rlcredit.formulas.finite import find_non_finite_name
from rlcredit.record.artifacts import find_run_folder
from rlcredit.tasks.task import PromptBatch
from rlcredit.training.checks import find_rollout_fault, find_value_fault, find_weight_fault
from rlcredit.training.postmortem import collect_postmortem, write_postmortem
from rlcredit.training.sampler import RolloutSampler


class GuardedSampler(RolloutSampler):
    """Refuse rollouts and checkpoints with numbers that are not finite."""

    _held_out_fault: RunStopped | None = None

    @property
    def learned(self) -> dict[str, Tensor]:
        """The weights that learn, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    @contextlib.contextmanager
    def guarded(self, rollout: Rollout) -> Iterator[None]:
        """Stop all processes if one finds NaN or infinity, and keep the batch; every process must enter.

        Raises:
            Ended: with the message of the first process that has a fault.

        """
        fault = None
        try:
            yield
        except NotFinite as error:
            fault = error
        self._settle(fault, rollout)

    def _settle(self, fault: RunStopped | None, rollout: Rollout, **details: Any) -> None:
        """Stop all processes if one has a fault; each keeps its own batch."""
        if not is_set_anywhere(fault is not None, self.device):
            return
        step, rank = self.global_step, self.trainer.global_rank
        content = collect_postmortem(rollout, {"step": step, "rank": rank, "message": str(fault or ""), **details})
        kept_where = write_postmortem(find_run_folder(self.trainer).postmortem_file(step, rank), content)
        raise share_first_value(fault and type(fault)(f"{fault} {kept_where}"))

    def _round(self, prompts: PromptBatch, prompt_ids: Tensor, solved: list[Tensor]) -> Rollout:
        """Sample and judge once."""
        rollout = super()._round(prompts, prompt_ids, solved)
        if fault := find_rollout_fault(rollout):
            fault = find_weight_fault(self.global_step, self.learned, "whatever came between two steps") or fault
        self._settle(fault, rollout)
        return rollout

    def rollout(self, prompts: PromptBatch) -> Rollout:
        """Answer prompts, judge the answers, and score them by the reference if something reads that."""
        rollout = super().rollout(prompts)
        if rollout.ref_logprobs is not None:
            self._settle(find_rollout_fault(rollout), rollout)
        return rollout

    def _sampled(self, *args: Any, **kwargs: Any) -> Samples:
        """Sample, and note whether the log-probabilities of held-out answers are finite."""
        samples = super()._sampled(*args, **kwargs)
        if not self.trainer.training and self._held_out_fault is None:
            outputs = ("log-probabilities", samples.logprobs, samples.mask)
            self._held_out_fault = find_value_fault(self.global_step, "sampling held-out answers", *outputs)
        return samples

    def on_validation_epoch_end(self) -> None:
        """Stop all processes if one has a fault: only here have all of them finished their batches."""
        fault, self._held_out_fault = self._held_out_fault, None
        if is_set_anywhere(fault is not None, self.device):
            raise share_first_value(fault)

    def on_train_end(self) -> None:
        """Refuse weights that are not finite before the adapter is written."""
        if fault := find_weight_fault(self.global_step, self.learned, "training"):
            raise fault

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse to save what is not finite.

        Raises:
            NotFinite: with the first weight, or moment of a weight.

        """
        names = list(self.learned)
        moments = (
            (f"{moment} of {names[index]}", value)
            for state in checkpoint.get("optimizer_states", [])
            for index, moments_of_weight in state["state"].items()
            for moment, value in moments_of_weight.items()
            if isinstance(value, Tensor)
        )
        if first := find_non_finite_name([*self.learned.items(), *moments]):
            raise NotFinite(
                f"Step {self.global_step}: {first} is not finite. No such checkpoint is written; earlier ones are as "
                "they were."
            )

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse to continue from weights that are not finite.

        Raises:
            NotFinite: with the first weight.

        """
        if first := find_non_finite_name(checkpoint["state_dict"].items()):
            raise NotFinite(f"ckpt_path: {first} of the checkpoint is not finite. Continue from an earlier one.")
