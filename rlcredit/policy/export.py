"""Export a policy as a plain model: the adapter is merged into weights that transformers can load."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlcredit.base.files import write_atomically, write_folder_atomically
from rlcredit.pages.tables import Table
from rlcredit.policy.model_loading import Precision
from rlcredit.policy.policy import Policy

MODEL_CARD = """---
library_name: transformers
{known}tags: [reinforcement-learning, rlvr, rlcredit]
---

# {name}

{base} with a LoRA adapter of rank {rank} added into its weights, {dtype}, by rlcredit.

{facts}

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("path/to/this/folder")
tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
```

{prompt} Its licence is that of the base model.
"""


class MergedWeights:
    """The weights of a policy with its adapter merged, one at a time; the policy stays unchanged.

    The sum is taken in float32, of the base weights as they act in the policy: those of a base in fewer bits are
    dequantized. They are not rounded back, for rounded sums are another policy.

    Args:
        policy: Policy, loaded.

    """

    def __init__(self, policy: Policy) -> None:
        from peft.tuners.lora import LoraLayer  # noqa: PLC0415

        self.base: Any = policy.lm.get_base_model()
        self.adapted = {name: layer for name, layer in self.base.named_modules() if isinstance(layer, LoraLayer)}

    @torch.no_grad()
    def merge_all_weights(self) -> dict[str, Tensor]:
        """Return all weights under the names that they have without an adapter, float32, on the CPU."""
        return {
            f"{name.removesuffix('.base_layer')}.{kind}".lstrip("."): self._weight(name, module, kind)
            for name, module in self.base.named_modules()
            if ".lora_" not in name
            for kind in self._kinds(module)
        }

    def adapter_change(self, layer: Any) -> Tensor:
        """Return the adapter's change to the weight of a layer, float32."""
        return layer.get_delta_weight("default").float()

    @torch.no_grad()
    def rounding_error_share(self, dtype: torch.dtype) -> float:
        """Return the share of the adapter's change that rounding the merged weights would lose or add."""
        pairs = ((self._base(layer.get_base_layer()), self.adapter_change(layer)) for layer in self.adapted.values())
        squares = torch.tensor([0.0, 0.0], dtype=torch.float64)
        for base, change in pairs:
            error = (base + change).to(dtype).float() - (base + change)
            squares += torch.tensor([error.double().square().sum(), change.double().square().sum()])
        return float((squares[0] / squares[1]).sqrt()) if squares[1] else 0.0

    def _kinds(self, module: nn.Module) -> list[str]:
        buffers = [name for name in module._buffers if name not in module._non_persistent_buffers_set]
        is_quantized = type(module).__module__.startswith("bitsandbytes")
        return [
            name
            for name in [*module._parameters, *([] if is_quantized else buffers)]
            if getattr(module, name) is not None
        ]

    def _weight(self, name: str, module: nn.Module, kind: str) -> Tensor:
        value = self._base(module) if kind == "weight" else getattr(module, kind).float()
        layer = self.adapted.get(name.removesuffix(".base_layer")) if kind == "weight" else None
        return (value if layer is None else value + self.adapter_change(layer)).detach().cpu().contiguous()

    @staticmethod
    def _base(layer: Any) -> Tensor:
        from peft.utils.integrations import dequantize_module_weight  # noqa: PLC0415

        if not type(layer).__module__.startswith("bitsandbytes"):
            return layer.weight.float()
        return dequantize_module_weight(layer).float()


def export_policy(
    policy: Policy,
    folder: Path,
    dtype: Precision = "float32",
    generation: Mapping[str, Any] | None = None,
    facts: Mapping[str, str] | None = None,
) -> None:
    """Write a policy as a model that needs neither rlcredit nor PEFT: safetensors, tokenizer, settings and a card.

    In float32 its log-probabilities are the policy's but for the rounding of float32. Of a base in bfloat16 or in
    fewer bits the sums are written in float32 too; its own arithmetic rounds more than that of the file.

    Args:
        policy: Policy, loaded; unchanged afterwards.
        folder: Folder that does not exist, or is empty.
        dtype: Precision of the weights; in any but float32 the sums are rounded, see
            :meth:`MergedWeights.rounding_error_share`.
        generation: Settings for ``generate``, beside the base's own.
        facts: Rows of the card.

    """
    merged_weights = MergedWeights(policy)
    weights = {name: weight.to(getattr(torch, dtype)) for name, weight in merged_weights.merge_all_weights().items()}
    model = _build_empty_model(merged_weights.base, dtype)
    model.load_state_dict(weights, assign=True)
    model.tie_weights()
    model.generation_config = copy.deepcopy(merged_weights.base.generation_config)
    model.generation_config.update(**(generation or {}))
    with write_folder_atomically(folder) as folder_in_progress:
        model.save_pretrained(folder_in_progress, safe_serialization=True)
        policy.save_tokenizer(folder_in_progress)
        write_atomically(folder_in_progress / "README.md", _render_model_card(policy, folder, dtype, facts or {}))


def _build_empty_model(base: Any, dtype: Precision) -> Any:
    """Return a model of the same kind without weights."""
    config = copy.deepcopy(base.config)
    config.dtype = getattr(torch, dtype)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        return type(base)(config)


def _render_model_card(policy: Policy, folder: Path, dtype: str, facts: Mapping[str, str]) -> str:
    manner = "as raw text" if not policy.prompt.chat else "by its chat template"
    return MODEL_CARD.format(
        base=policy.path,
        known="" if Path(policy.location).exists() else f"base_model: {policy.path}\n",
        name=folder.name,
        rank=policy.lora.rank,
        dtype=dtype,
        facts=Table(("", ""), list(facts.items())).to_markdown(),
        prompt=f"It was trained with prompts written {manner}.",
    )
