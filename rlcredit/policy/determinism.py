"""Base models that are the same policy in every forward pass: no dropout, and no weight that is not finite."""

from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from rlcredit.base.exit_status import NotFinite
from rlcredit.formulas.finite import find_non_finite_name

NOISE_SETTINGS = ("drop", "jitter")
"""Parts of the names under which models keep how much noise they add in training: ``attn_pdrop``, ``layerdrop``,
``hidden_dropout_prob``, ``drop_path_rate``, ``router_jitter_noise``."""


def disable_config_dropout(config: Any) -> Any:
    """Set every dropout of a configuration and its parts to zero, and return it.

    Models read these numbers when they are built, into modules or for functional dropout.

    Args:
        config: Configuration of transformers, or a part of one.

    """
    for name, value in vars(config).items():
        if any(part in name for part in NOISE_SETTINGS) and type(value) in (int, float):
            setattr(config, name, type(value)(0))
        elif hasattr(value, "to_dict"):
            disable_config_dropout(value)
    return config


def prepare_base_model(model: nn.Module, location: str) -> nn.Module:
    """Turn off dropout modules that no configuration controls, and refuse weights that are not finite.

    Args:
        model: Model, frozen.
        location: Folder or hub id of its weights, for the message.

    Raises:
        NotFinite: with the first weight that holds NaN or infinity; each is read once, quantized ones are not.

    """
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
    if name := find_non_finite_name(model.named_parameters()):
        raise NotFinite(
            f"{location}: the weight {name} holds NaN or infinity, so every sample would too. Copy or download "
            "the model again; if it was saved in float16, weights may have overflowed."
        )
    return model
