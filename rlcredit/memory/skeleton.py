"""A model without its weights: its configuration, and the layers that can get an adapter."""

from typing import Any

import torch
from torch import nn

from rlcredit.loading import load_model_config
from rlcredit.memory.architecture import LinearShape


def build_meta_model(location: str) -> tuple[Any, nn.Module]:
    """Return the configuration of a model and the model on the meta device; no weight is read.

    Args:
        location: a folder or the id of a hub repository.

    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    config = load_model_config(location)
    with torch.device("meta"):
        return config, AutoModelForCausalLM.from_config(config, trust_remote_code=False)


def find_linear_layers(model: nn.Module) -> dict[str, LinearShape]:
    """Return what PEFT counts as linear layers, by name, all but the head; GPT-2's have their weights transposed."""
    from transformers.pytorch_utils import Conv1D  # noqa: PLC0415

    layers: dict[str, LinearShape] = {}
    head = model.get_output_embeddings()  # pyright: ignore[reportCallIssue]
    for name, layer in model.named_modules():
        if layer is head:
            continue
        if isinstance(layer, nn.Linear):
            layers[name] = LinearShape(layer.in_features, layer.out_features, layer.bias is not None)
        elif isinstance(layer, Conv1D):
            layers[name] = LinearShape(*layer.weight.shape, bias=True)
    return layers
