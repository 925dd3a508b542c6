"""The trained adapter, in PEFT's format."""

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.artifacts import folder, publish
from rlcredit.module import PolicyModule


class SaveAdapter(Callback):
    """Write the adapter at the end of training; ``PeftModel.from_pretrained`` reads it."""

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save and upload."""
        assert isinstance(pl_module, PolicyModule)
        path = folder(trainer) / "adapter"
        pl_module.policy.save_adapter(path)
        publish(trainer, path, "adapter")
