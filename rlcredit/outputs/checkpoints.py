"""Checkpoints, written between two steps, completely or not at all, with the previous one kept."""

import copy
import os
import shutil
from pathlib import Path
from typing import Any, cast

from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.base.files import sync_folder, write_durably
from rlcredit.base.lightning_private import DeferredCheckpoint, read_loop_states
from rlcredit.run_folder.checkpoint_files import find_checkpoint_damage, write_sealed_checkpoint
from rlcredit.run_folder.layout import LAST_CHECKPOINT
from rlcredit.training.module import PolicyModule


class DurableCheckpoints(TorchCheckpointIO):
    """Write each checkpoint under a temporary name, sync it to disk, and rename it; verify it before it is read."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Save a checkpoint durably.

        Raises:
            NoStorage: the disk does not take it; the checkpoints before it are as they were.

        """
        try:
            write_durably(Path(path), lambda file: write_sealed_checkpoint(checkpoint, file))
        except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
            _raise_hidden_signal(error)
            raise StorageUnavailable(
                f"No checkpoint can be written to {path} ({_describe_cause(error)}), so training stops here instead of "
                "losing what it learns. Make room."
            ) from error

    def load_checkpoint(self, path: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        """Load a checkpoint if it is intact.

        Raises:
            ValueError: it is damaged.

        """
        if problem := find_checkpoint_damage(Path(path)):
            raise ValueError(f"{path} is damaged: {problem}.")
        return super().load_checkpoint(path, *arguments, **named)


class Checkpoints(DeferredCheckpoint):
    """Save between two steps, after the previous step has been recorded and evaluated.

    Lightning saves before the metrics of a step are logged and before the evaluation that follows it; a run continued
    from there would lack both. The checkpoint that was newest before is kept. ``last.ckpt`` is another name of the
    newest one. Arguments as for Lightning's ModelCheckpoint.
    """

    def __init__(
        self,
        dirpath: str | None = None,
        filename: str | None = "{step}",
        monitor: str | None = "step",
        mode: str = "max",
        save_top_k: int = 2,
        save_last: bool = True,
        every_n_train_steps: int | None = 20,
        enable_version_counter: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dirpath,
            filename,
            monitor=monitor,
            mode=mode,
            save_top_k=save_top_k,
            save_last="link" if save_last else False,
            every_n_train_steps=every_n_train_steps,
            enable_version_counter=enable_version_counter,
            **kwargs,
        )
        self._loops: dict[str, Any] | None = None
        self._owed_at: int | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Register to save between any two steps."""
        super().setup(trainer, pl_module, stage)
        if stage == "fit":
            cast("PolicyModule", pl_module).between_steps.insert(0, lambda: self.save_if_due(trainer))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Determine whether a checkpoint is due after this step, and remember the state of Lightning's loops."""
        self._loops = copy.deepcopy(read_loop_states(trainer))
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the final state, whatever the interval."""
        if trainer.global_step:
            self.save_once(trainer)

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Restore the state of Lightning's loops, and the step whose evaluation was pending."""
        self._loops = copy.deepcopy(checkpoint["loops"])
        self.saved_step = checkpoint["global_step"]
        self._owed_at = checkpoint["global_step"] if checkpoint.get("evaluation_owed") else None

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the path of ``last.ckpt``, which the first checkpoint lacks: it was written before that link existed."""
        super().load_state_dict(state_dict)
        if self.save_last and self._saved_here:
            self.last_model_path = str(Path(self.best_model_path).with_name(LAST_CHECKPOINT))

    @property
    def _saved_here(self) -> bool:
        return bool(self.best_model_path) and Path(self.best_model_path).parent == Path(str(self.dirpath))

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save once more if only the last evaluation was missing, and link ``last.ckpt`` to the newest checkpoint."""
        if self._saved_here and self._owed_at is not None and self._owed_at == trainer.global_step:
            self.current_score = self.best_model_score  # which Lightning does not restore
            self.overwrite_best(trainer)  # the newest: what is monitored is the step
        link = Path(str(self.dirpath)) / LAST_CHECKPOINT
        if self.save_last and self._saved_here and not _is_same_file(link, self.best_model_path):
            self.link_checkpoint(self.best_model_path, str(link))

    def save_if_due(self, trainer: Trainer) -> None:
        """Save if a checkpoint is due after the previous step."""
        if self.is_due:
            self.save_once(trainer)

    def save_once(self, trainer: Trainer) -> None:
        """Save the state after the last step, at most once."""
        self.is_due = False
        self._owed_at = None
        if self._loops is None or self.saved_step == trainer.global_step:
            return
        self.save_candidate(trainer)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Store Lightning's loops as they were right after the step, so that training continues with the next one."""
        if self._loops is not None:
            checkpoint["loops"] = self._loops
        checkpoint["evaluation_owed"] = cast("PolicyModule", pl_module).state.phase.is_evaluation

    def is_superseded(self, previous: str, current: str) -> bool:
        """Keep two checkpoints; Lightning alone would never remove the one that the run was continued from."""
        home = Path(previous).parent.resolve()  # a checkpoint from elsewhere may name any path
        return previous != current and home.is_relative_to(Path(str(self.dirpath)).resolve())

    @rank_zero_only
    def link_checkpoint(self, path: str, link: str) -> None:
        """Link ``last.ckpt`` to the newest checkpoint atomically."""
        link_path, part_file = Path(link), Path(f"{link}.part")
        part_file.unlink(missing_ok=True)
        try:
            os.link(path, part_file)
        except OSError:  # some file systems have no hard links
            shutil.copyfile(path, part_file)
        os.replace(part_file, link_path)
        part_file.unlink(missing_ok=True)  # a rename between two names of one file does nothing
        sync_folder(link_path.parent)


def _is_same_file(path: Path, target: str) -> bool:
    return path.exists() and path.samefile(target)


def _raise_hidden_signal(error: BaseException) -> None:
    """Raise the signal that torch turned into an error while it was writing."""
    while error.__context__ is not None:
        error = error.__context__
        if not isinstance(error, Exception):
            raise error


def _describe_cause(error: BaseException) -> str:
    while error.__context__ is not None and not isinstance(error, OSError):
        error = error.__context__
    return str(error.strerror or error) if isinstance(error, OSError) else str(error).splitlines()[0]
