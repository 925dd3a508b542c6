"""What is known about the sizes of a policy without reading its weights, and without a network."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from rlcredit.config import strict_yaml
from rlcredit.policy.architecture import DecoderArchitecture, LinearShape, is_expert, parse_architecture
from rlcredit.policy.model_loading import load_model_config


def build_meta_model(location: str) -> tuple[Any, nn.Module]:
    """Return the configuration of a model and the model on the meta device; no weight is read.

    Args:
        location: Folder, or id of a hub repository.

    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    config = load_model_config(location)
    with torch.device("meta"):
        return config, AutoModelForCausalLM.from_config(config, trust_remote_code=False)


def find_linear_layers(model: nn.Module) -> dict[str, LinearShape]:
    """Return the layers that can get an adapter, by name: what PEFT counts as linear, except the head.

    GPT-2 transposes its weights. In a model of experts those are left out that PEFT would take for experts.
    """
    from transformers.pytorch_utils import Conv1D  # noqa: PLC0415

    layers: dict[str, LinearShape] = {}
    head = model.get_output_embeddings()  # pyright: ignore[reportCallIssue]
    has_experts = has_stacked_experts(model)
    for name, layer in model.named_modules():
        if layer is head or (has_experts and is_expert(name)):
            continue
        if isinstance(layer, nn.Linear):
            layers[name] = LinearShape(layer.in_features, layer.out_features, layer.bias is not None)
        elif isinstance(layer, Conv1D):
            layers[name] = LinearShape(*layer.weight.shape, bias=True)
    return layers


def has_stacked_experts(model: nn.Module) -> bool:
    """Whether a model holds the weights of all experts of a layer in one parameter of three dimensions."""
    return any(weight.ndim == 3 and ".experts." in name for name, weight in model.named_parameters())


HUB_SIZES = Path(__file__).parent / "hub.yaml"


class PolicySizes(NamedTuple):
    """Number of weights of a policy, and its architecture if memory can be calculated from it."""

    parameters: int
    architecture: DecoderArchitecture | None


def find_policy_sizes(location: str) -> PolicySizes | None:
    """Return the sizes of a policy; None if nothing is known.

    A folder says them in its ``config.json``, or else in the headers of its weights; the id of a hub repository is
    looked up among what has been downloaded, and then in ``hub.yaml``.

    Args:
        location: Folder, or id of a hub repository.

    """
    folder, architecture = Path(location), parse_architecture(read_policy_config(location))
    if architecture is not None:
        return PolicySizes(architecture.parameters, architecture)
    if folder.is_dir():
        weights = [_count_weights(file) for file in folder.glob("*.safetensors")]
        return PolicySizes(sum(weights), None) if weights and all(weights) else None
    return None


def read_policy_config(location: str) -> dict[str, Any]:
    """Return the ``config.json`` of a policy as far as it is known here, empty if it is not."""
    folder = Path(location)
    if folder.is_dir():
        return _read_json_mapping(folder / "config.json")
    return _read_downloaded_config(location) or _read_listed_config(location)


def _read_downloaded_config(repository: str) -> dict[str, Any]:
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

    try:
        file = try_to_load_from_cache(repository, "config.json")
    except ValueError:  # no name that a repository can have
        return {}
    return _read_json_mapping(Path(file)) if isinstance(file, str) else {}


def _read_listed_config(repository: str) -> dict[str, Any]:
    return strict_yaml.read_yaml(HUB_SIZES).get(repository, {})


def _read_json_mapping(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _count_weights(file: Path) -> int:
    """Return the number of weights in a file of safetensors; 0 if it cannot be read as one."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415

    try:
        with safe_open(file, framework="pt") as weights:
            return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    except (OSError, SafetensorError):
        return 0
