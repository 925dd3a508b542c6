"""Weights of adapters: read from a PEFT folder or a checkpoint, and loaded into a policy."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from rlcredit.config.strict_yaml import shorten_name
from rlcredit.policy.model_loading import find_embedded_name
from rlcredit.policy.policy import Policy
from rlcredit.policy.policy_sizes import build_meta_model, find_linear_layers
from rlcredit.run_folder.checkpoint_files import read_checkpoint

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""The two files of an adapter in PEFT's format."""

MERGE_ADVICE = "Merge this one into its model with PEFT and name the merged folder as --model."

READ_SETTINGS = ("r", "lora_alpha", "target_modules", "use_rslora", "base_model_name_or_path")
"""Settings of PEFT that say which adapter it is."""

IDLE_SETTINGS = (
    *("task_type", "auto_mapping", "peft_version", "inference_mode", "lora_dropout", "runtime_config", "loftq_config"),
    *("fan_in_fan_out", "layers_pattern", "megatron_core", "qalora_group_size", "ensure_weight_tying"),
)
"""Settings of PEFT that change nothing if the others have their plain values."""

PLAIN_SETTINGS = {
    "peft_type": ("LORA",),
    "bias": ("none", None),
    "revision": ("main", "", None),
    "init_lora_weights": (True, False, "gaussian", "orthogonal", "eva", None),
}
"""Settings of PEFT and their values with which an adapter is a pair of factors per layer, all of one rank, beside
weights as they were published. Every other setting must be empty: one that is not known here may do anything."""

_NAME = re.compile(r"lm\.base_model\.model\.(?P<layer>.+)\.lora_(?P<factor>[AB])\.default\.weight")


def read_adapter_settings(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the LoRA settings that an adapter folder describes, and its base model.

    The settings are arguments of :class:`~rlcredit.policy.policy.LoRA`. The base model is empty where the folder names
    none, and the short name wherever one of rlcredit's own lay.

    Raises:
        ValueError: it is no plain LoRA, or cannot be read.

    """
    if not (folder / ADAPTER_CONFIG).is_file():
        raise ValueError(f"{shorten_name(folder)}: not an adapter folder; {ADAPTER_CONFIG} is missing.")
    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{shorten_name(folder / ADAPTER_CONFIG)} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{shorten_name(folder / ADAPTER_CONFIG)} cannot be read: it is not a mapping of settings.")
    for name in dict.fromkeys(("peft_type", *config)):
        value = config.get(name)
        if name not in (*READ_SETTINGS, *IDLE_SETTINGS) and (
            value not in PLAIN_SETTINGS[name] if name in PLAIN_SETTINGS else value
        ):
            raise ValueError(
                f"{shorten_name(folder / ADAPTER_CONFIG)}: {shorten_name(name)} is {shorten_name(repr(value))}; only "
                f"plain LoRA adapters can be read. {MERGE_ADVICE}"
            )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise ValueError(f"{shorten_name(folder)}: {ADAPTER_WEIGHTS} is missing. Save the adapter with safetensors.")
    rank, alpha, targets = (config.get(name) for name in ("r", "lora_alpha", "target_modules"))
    is_named = isinstance(targets, str) or (
        isinstance(targets, list) and all(isinstance(target, str) for target in targets)
    )
    if type(rank) is not int or rank < 1 or not isinstance(alpha, int | float) or not targets or not is_named:
        values = shorten_name(repr((rank, alpha, targets)))
        raise ValueError(
            f"{shorten_name(folder / ADAPTER_CONFIG)}: r, lora_alpha and target_modules are {values}; "
            "expected a number from 1, a number, and names of layers."
        )
    if config.get("use_rslora"):
        alpha *= math.sqrt(rank)  # PEFT then scales by alpha over the root of the rank
    base = str(config.get("base_model_name_or_path") or "")
    embedded_name = find_embedded_name(base) if base else None
    return {"rank": rank, "alpha": float(alpha), "targets": targets}, embedded_name or base


def load_adapter_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights of an adapter, by their names in a policy.

    Args:
        path: Folder in PEFT's format, or checkpoint of a run.

    Raises:
        ValueError: it cannot be read.

    """
    if path.is_file():
        return {name.removeprefix("policy."): weight for name, weight in read_checkpoint(path)["state_dict"].items()}
    from safetensors.torch import load_file  # noqa: PLC0415

    try:
        weights = load_file(path / ADAPTER_WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{shorten_name(path / ADAPTER_WEIGHTS)} cannot be read: {error}") from None
    return {f"lm.{name.removesuffix('.weight')}.default.weight": weight for name, weight in weights.items()}


def refuse_foreign_adapter(policy: Policy, adapter: Mapping[str, Tensor]) -> None:
    """Refuse an adapter of another model; no weight of the model is read.

    Args:
        policy: Policy; it is not loaded.
        adapter: Weights of the adapter by name, see :func:`load_adapter_weights`.

    Raises:
        ValueError: with the first layer that the model lacks, or that is of another size.

    """
    layers = find_linear_layers(build_meta_model(policy.location)[1])
    for name, weight in adapter.items():
        match = _NAME.fullmatch(name)
        layer = layers.get(match["layer"]) if match else None
        sizes = None if layer is None else {"A": layer.in_features, "B": layer.out_features}
        rank, size = weight.shape if match and match["factor"] == "A" else weight.shape[::-1]
        if match is None or sizes is None or (rank, size) != (policy.lora.rank, sizes[match["factor"]]):
            raise ValueError(
                f"{shorten_name(policy.path)}: the adapter is not of this model: "
                f"{name} has shape {tuple(weight.shape)}."
            )


@torch.no_grad()
def install_adapter(policy: Policy, adapter: Mapping[str, Tensor] | None) -> None:
    """Load the weights of an adapter into a policy; every weight must be present.

    Args:
        policy: Policy with an adapter of the same shapes.
        adapter: Weights of the adapter by name, see :func:`load_adapter_weights`; None for one that changes nothing,
            bit for bit.

    Raises:
        ValueError: the shapes are others.

    """
    parameters = {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}
    if adapter is None:
        for name, weight in parameters.items():
            if ".lora_B." in name:
                weight.zero_()
        return
    shapes = {name: weight.shape for name, weight in adapter.items()}
    policy_shapes = {name: weight.shape for name, weight in parameters.items()}
    if names := sorted(
        name for name in shapes.keys() | policy_shapes.keys() if shapes.get(name) != policy_shapes.get(name)
    ):
        raise ValueError(
            f"{policy.path}: the adapter is not of this model with LoRA rank {policy.lora.rank}: {len(names)} "
            f"weights differ, the first is {names[0]}, {_format_shape(shapes.get(names[0]))} instead of "
            f"{_format_shape(policy_shapes.get(names[0]))}. Name the configuration of the run that wrote it."
        )
    for name, weight in parameters.items():
        weight.copy_(adapter[name])


def _format_shape(shape: torch.Size | None) -> str:
    return "missing" if shape is None else " x ".join(map(str, shape))
