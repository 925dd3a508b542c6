"""Policies of an evaluation: a base model, or one with the adapter of a run, a checkpoint, or a PEFT folder."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError

from rlcredit.base.files import file_sha256
from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import instantiate_described_class
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.paths import find_config_file
from rlcredit.config.strict_yaml import read_yaml, shorten_name
from rlcredit.policy.adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_adapter_settings
from rlcredit.policy.policy import Policy
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import RunFolder

BASE_NAME = "base"
POLICY_CLASS = "rlcredit.policy.Policy"
"""Class path of a policy in a saved configuration. It names folders of answers, wherever the class is defined."""

MAX_HASHED_BYTES = 2**20
"""Bytes of a file of a model that are read to tell it from another; of larger ones only name and size are."""


@dataclass(frozen=True)
class EvaluatedPolicy:
    """A policy to be evaluated.

    Args:
        name: Name in tables and metrics.
        settings: Class and arguments of :class:`~rlcredit.policy.policy.Policy`, as in a configuration.
        adapter: Folder or checkpoint with the weights of the adapter; None for the base model.

    """

    name: str
    settings: Mapping[str, Any]
    adapter: Path | None = None

    def build_policy(self) -> Policy:
        """Return the policy, not loaded.

        Raises:
            ValueError: the settings are none of a policy.

        """
        try:
            return instantiate_described_class(self.settings, Policy, "policy")
        except (ArgumentError, ValueError) as error:
            lines = [line.strip(" -") for line in str(error).splitlines()]
            telling = [line for line in lines if "is not accepted" in line or line.endswith(".")]
            raise ValueError(f"{self.name}: {(telling or [' '.join(lines)])[0]} ({self.settings})") from None

    def identity(self) -> dict[str, Any]:
        """Return the marks that tell it from other policies: settings, and hashes of adapter and model."""
        file = self.adapter / ADAPTER_WEIGHTS if self.adapter and self.adapter.is_dir() else self.adapter
        return {
            "settings": dict(self.settings),
            "adapter_sha256": file_sha256(file) if file else None,
            "model_sha256": _hash_model_files(Path(self.build_policy().location)),
        }


def make_base_policy(model: str) -> EvaluatedPolicy:
    """Return a model without an adapter, under the name of its folder if it has one.

    Args:
        model: ``tiny``, a folder, the id of a hub repository, or a configuration file with ``model.policy``.

    """
    return EvaluatedPolicy(Path(model).name if Path(model).is_dir() else BASE_NAME, _resolve_model_settings(model))


def find_trained_policy(path: Path, model: str | None = None, name: str | None = None) -> EvaluatedPolicy:
    """Return the policy of a run folder, a checkpoint or an adapter folder.

    Args:
        path: Path of a run folder, a checkpoint or an adapter folder.
        model: Model that the adapter belongs to; the one that the run or the adapter names if None.
        name: Name in tables; if None that of the run, and for checkpoints the step.

    Raises:
        ValueError: it is none of them, or lacks what tells how the adapter is to be read.

    """
    if path.is_file():
        policy = _read_checkpoint_policy(path)
    elif (path / ADAPTER_CONFIG).is_file():
        policy = _read_adapter_policy(path, model)
    elif RunFolder(path).config.is_file():
        policy = _find_run_policy(path)
    else:
        raise ValueError(
            f"{shorten_name(path)} is no run folder ({RunFolder(path).config.name}), no checkpoint, and no adapter "
            f"in PEFT's format ({ADAPTER_CONFIG})."
        )
    if model is not None:
        model_arguments = _resolve_model_settings(model)["init_args"]
        policy = replace(policy, settings=_merge_policy_arguments(policy.settings, {**model_arguments, "lora": None}))
    return replace(policy, name=name) if name else policy


def strip_adapter(policy: EvaluatedPolicy) -> EvaluatedPolicy:
    """Return the base model of a policy, with the same settings."""
    return replace(policy, name=BASE_NAME, adapter=None)


def override_policy_settings(policy: EvaluatedPolicy, arguments: Mapping[str, Any]) -> EvaluatedPolicy:
    """Return a policy with some arguments replaced; mappings are merged."""
    return replace(policy, settings=_merge_policy_arguments(policy.settings, arguments))


def _find_run_policy(path: Path) -> EvaluatedPolicy:
    folder = RunFolder(path)
    checkpoint, problems = find_newest_checkpoint(folder.checkpoints)
    if checkpoint is not None:
        return replace(_read_checkpoint_policy(checkpoint), name=_read_run_name(folder))
    if (folder.adapter / ADAPTER_CONFIG).is_file():
        return EvaluatedPolicy(_read_run_name(folder), _read_policy_settings(folder.config), folder.adapter)
    raise ValueError(
        f"{shorten_name(path)}: the run has left no checkpoint and no adapter. {' '.join(problems)}".rstrip()
    )


def _read_checkpoint_policy(file: Path) -> EvaluatedPolicy:
    checkpoint = read_checkpoint(file)
    if not checkpoint.get("state_dict"):
        raise ValueError(f"{shorten_name(file)} holds no adapter.")
    folder = RunFolder(file.resolve().parent.parent)
    if not folder.config.is_file():
        raise ValueError(
            f"{shorten_name(file)}: a checkpoint holds the weights of the adapter and not its scale; "
            f"{folder.config.name} of its run, one folder above it, is missing. Use --adapter with a folder in PEFT's "
            "format instead."
        )
    return EvaluatedPolicy(
        f"{_read_run_name(folder)}-step{checkpoint['global_step']}", _read_policy_settings(folder.config), file
    )


def _read_adapter_policy(folder: Path, model: str | None) -> EvaluatedPolicy:
    lora, base_model = read_adapter_settings(folder)
    if model is None and not base_model:
        raise ValueError(f"{shorten_name(folder)}: the adapter does not name its base model. Name it with --model.")
    place = folder.resolve()
    name = place.parent.name if place.name == RunFolder(place).adapter.name else place.name
    return EvaluatedPolicy(name, _normalise_policy_settings({"path": base_model, "lora": lora}), folder)


def _read_run_name(folder: RunFolder) -> str:
    config = read_yaml(folder.config)
    return f"{config.get('condition', folder.path.name)}-seed{config.get('seed_everything', 0)}"


def _read_policy_settings(file: Path) -> dict[str, Any]:
    """Return the policy settings of a configuration; the defaults if it has none."""
    config = read_yaml(file)
    model = config.get("model") if isinstance(config, dict) else None
    try:
        model = expand_call_forms(model, {"policy": Policy})
    except CallFormError as error:
        raise ValueError(f"{shorten_name(file)}: model.{error}") from None
    if not isinstance(model, dict):
        raise ValueError(f"{shorten_name(file)}: a model's configuration must have the keys model: {{policy: ...}}.")
    return _normalise_policy_settings(model.get("policy") or {})


def _resolve_model_settings(model: str) -> dict[str, Any]:
    if model.endswith((".yaml", ".yml")):
        return _read_policy_settings(Path(find_config_file(model)))
    return _normalise_policy_settings({"path": model})


def _normalise_policy_settings(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return a class and its arguments, whichever way they were written."""
    if "class_path" in description:
        return {"class_path": description["class_path"], "init_args": dict(description.get("init_args") or {})}
    return {"class_path": POLICY_CLASS, "init_args": dict(description)}


def _merge_policy_arguments(settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    init_args = dict(settings["init_args"])
    for name, value in arguments.items():
        if isinstance(value, Mapping) and isinstance(init_args.get(name), Mapping):
            init_args[name] = {**init_args[name], **value}
        elif value is not None:
            init_args[name] = value
    return {**settings, "init_args": init_args}


def _hash_model_files(location: Path) -> str | None:
    """Return a hash of a local model's files; None for a model on the hub."""
    if not location.is_dir():
        return None
    files = sorted(path for path in location.iterdir() if path.is_file() and not path.name.startswith("."))
    sizes = [(path.name, path.stat().st_size) for path in files]
    entries = [(name, size, file_sha256(location / name) if size <= MAX_HASHED_BYTES else None) for name, size in sizes]
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()
