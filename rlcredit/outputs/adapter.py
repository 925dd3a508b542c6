"""The trained adapter in PEFT's format, with a model card that states its origin and how to load it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from safetensors import SafetensorError

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.outputs.code_versions import describe_code_versions, read_code_versions
from rlcredit.outputs.held_out import describe_held_out_change
from rlcredit.outputs.run_identity import RunIdentity
from rlcredit.pages.tables import Table
from rlcredit.policy.model_loading import find_embedded_policy
from rlcredit.record.artifacts import find_run_folder, publish_file
from rlcredit.training.module import PolicyModule

CARD_NAME = "README.md"

CARD_PARAMETERS = ("stack", "loss", "task", "optimizer", "completions", "max_tokens", "temperature")
"""Parameters of a run that the card names."""

CARD_TEMPLATE = """---
{header}
---

# {name}

A LoRA adapter trained with rlcredit by reinforcement learning with verifiable rewards.

{facts}

The tokenizer beside it is the base model's, with the padding that training used.

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "path/of/this/folder"
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained({base!r}), folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
```

The policy that was trained is the one sampled at temperature {temperature}, without top-p or top-k.

Licence: an adapter changes weights of its base model, whose licence says how both may be used.
"""


def render_adapter_card(
    name: str,
    path: str,
    location: str,
    step: int,
    parameters: Mapping[str, Any],
    versions: Mapping[str, str],
    held_out: str | None,
) -> str:
    """Return the card in Markdown.

    Args:
        name: Name of the run.
        path: Path of the base model, as configured.
        location: Folder or hub id where its weights lie.
        step: Optimizer steps taken.
        parameters: Parameters of the run.
        versions: Versions of the code and its libraries.
        held_out: Held-out pass@1 before and after training, None if unknown.

    """
    header = ["library_name: peft", "tags: [lora, reinforcement-learning, rlcredit]"]
    if not find_embedded_policy(path) and not Path(path).exists():  # of a hub
        header.insert(1, f"base_model: {path}")
    base = f"`{path}`, embedded in rlcredit" if find_embedded_policy(path) else f"`{path}`"
    facts = {
        "base": base,
        "run": name,
        "steps": step,
        **{key: parameters.get(key) for key in CARD_PARAMETERS},
        **({"held-out pass@1": held_out} if held_out else {}),
        "made with": describe_code_versions(versions),
    }
    return CARD_TEMPLATE.format(
        header="\n".join(header),
        name=name,
        facts=Table(("", ""), [(key, str(value)) for key, value in facts.items()]).to_markdown(),
        base=location,
        temperature=parameters.get("temperature"),
    )


class SaveAdapter(Callback):
    """Write the adapter at the end of training, its tokenizer and a card; ``PeftModel.from_pretrained`` reads it.

    Args:
        identity: Identity of the run.

    """

    def __init__(self, identity: RunIdentity) -> None:
        self.identity = identity

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the adapter completely or not at all.

        Raises:
            StorageUnavailable: the disk does not take it.

        """
        assert isinstance(pl_module, PolicyModule)
        path = find_run_folder(trainer).adapter
        part_folder = path.with_name(f"{path.name}.part")
        shutil.rmtree(part_folder, ignore_errors=True)
        try:
            policy = pl_module.policy
            policy.save_adapter(part_folder)
            policy.save_tokenizer(part_folder)
            details = (
                policy.path,
                policy.location,
                trainer.global_step,
                self.identity.parameters,
                read_code_versions(),
                describe_held_out_change(find_run_folder(trainer), trainer.global_step),
            )
            (part_folder / CARD_NAME).write_text(render_adapter_card(self.identity.name, *details), encoding="utf-8")
            shutil.rmtree(path, ignore_errors=True)
            os.replace(part_folder, path)
        except (OSError, SafetensorError) as error:
            raise StorageUnavailable(f"The adapter cannot be written to {path} ({error}). Make room.") from error
        finally:
            shutil.rmtree(part_folder, ignore_errors=True)
        publish_file(trainer, path, "adapter")
