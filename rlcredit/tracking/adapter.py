"""The trained adapter, in PEFT's format."""

import os
import shutil

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from safetensors import SafetensorError

from rlcredit.exits import StorageUnavailable
from rlcredit.module import PolicyModule
from rlcredit.record.artifacts import find_run_folder, publish_file
from rlcredit.tracking.card import NAME, render_adapter_card
from rlcredit.tracking.identity import RunIdentity
from rlcredit.tracking.versions import read_code_versions


class SaveAdapter(Callback):
    """Write the adapter at the end of training, its tokenizer and a card; ``PeftModel.from_pretrained`` reads it.

    Args:
        identity: of the run.

    """

    def __init__(self, identity: RunIdentity) -> None:
        self.identity = identity

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save, whole or not at all.

        Raises:
            NoStorage: the disk does not take it.

        """
        assert isinstance(pl_module, PolicyModule)
        path = find_run_folder(trainer).adapter
        unfinished = path.with_name(f"{path.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            policy = pl_module.policy
            policy.save_adapter(unfinished)
            policy.save_tokenizer(unfinished)
            described = (
                policy.path,
                policy.location,
                trainer.global_step,
                self.identity.parameters,
                read_code_versions(),
            )
            (unfinished / NAME).write_text(render_adapter_card(self.identity.name, *described), encoding="utf-8")
            shutil.rmtree(path, ignore_errors=True)
            os.replace(unfinished, path)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise StorageUnavailable(
                f"The adapter cannot be written to {path} ({error}). Make room, then continue with "
                "--ckpt_path last, which writes it."
            ) from error
        publish_file(trainer, path, "adapter")
