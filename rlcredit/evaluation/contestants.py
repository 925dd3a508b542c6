"""Who answers: a base model, or one with the adapter of a run, a checkpoint, or a folder in PEFT's format."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from rlcredit.adapters import CONFIG, WEIGHTS, described
from rlcredit.files import file_sha256
from rlcredit.inputs.class_paths import refuse_misplaced
from rlcredit.inputs.found import found
from rlcredit.inputs.strict_yaml import read as read_yaml
from rlcredit.inputs.strict_yaml import shown
from rlcredit.policy import Policy
from rlcredit.run_folder.checkpoint_files import newest
from rlcredit.run_folder.checkpoint_files import read as read_checkpoint
from rlcredit.run_folder.layout import RunFolder

BASE = "base"
SMALL = 2**20
"""Bytes of a file of a model that are read to tell it from another; of larger ones only name and size are."""


@dataclass(frozen=True)
class Contestant:
    """A policy that is evaluated.

    Args:
        name: in tables and metrics.
        settings: of :class:`~rlcredit.policy.Policy`, as in a configuration: its class and arguments.
        adapter: folder or checkpoint with the weights of the adapter; None for the base model.

    """

    name: str
    settings: Mapping[str, Any]
    adapter: Path | None = None

    def policy(self) -> Policy:
        """Return the policy, not loaded.

        Raises:
            ValueError: the settings are none of a policy.

        """
        parser = ArgumentParser(exit_on_error=False)
        parser.add_subclass_arguments(Policy, "policy")
        try:
            config = parser.parse_object({"policy": self.settings})
            refuse_misplaced(config["policy"], Policy, "policy")
            return parser.instantiate_classes(config)["policy"]
        except (ArgumentError, ValueError) as error:
            lines = [line.strip(" -") for line in str(error).splitlines()]
            telling = [line for line in lines if "is not accepted" in line or line.endswith(".")]
            raise ValueError(f"{self.name}: {(telling or [' '.join(lines)])[0]} ({self.settings})") from None

    def identity(self) -> dict[str, Any]:
        """Return what tells it from every other: settings, and digests of adapter and model."""
        file = self.adapter / WEIGHTS if self.adapter and self.adapter.is_dir() else self.adapter
        return {
            "settings": dict(self.settings),
            "adapter_sha256": file_sha256(file) if file else None,
            "model_sha256": _model_sha256(Path(self.policy().location)),
        }


def base(model: str) -> Contestant:
    """Return a model without an adapter.

    Args:
        model: ``tiny``, a folder, the id of a hub repository, or a configuration file with ``model.policy``.

    """
    return Contestant(BASE, _of_model(model))


def trained(path: Path, model: str | None = None, name: str | None = None) -> Contestant:
    """Return the policy of a run folder, a checkpoint or an adapter folder.

    Args:
        path: of any of them.
        model: that the adapter belongs to; what the run, or the adapter, names if None.
        name: in tables; that of the run if None, and for checkpoints its step.

    Raises:
        ValueError: it is none of them, or lacks what tells how the adapter is to be read.

    """
    if path.is_file():
        contestant = _of_checkpoint(path)
    elif (path / CONFIG).is_file():
        contestant = _of_adapter(path, model)
    elif RunFolder(path).config.is_file():
        contestant = _of_run(path)
    else:
        raise ValueError(
            f"{shown(path)} is no run folder ({RunFolder(path).config.name}), no checkpoint, and no adapter in PEFT's "
            f"format ({CONFIG})."
        )
    if model is not None:
        taken = _of_model(model)["init_args"]
        contestant = replace(contestant, settings=_merged(contestant.settings, {**taken, "lora": None}))
    return replace(contestant, name=name) if name else contestant


def without_adapter(contestant: Contestant) -> Contestant:
    """Return the base model of a contestant, read and asked in the same way."""
    return replace(contestant, name=BASE, adapter=None)


def changed(contestant: Contestant, arguments: Mapping[str, Any]) -> Contestant:
    """Return a contestant with other arguments of its policy; mappings are merged."""
    return replace(contestant, settings=_merged(contestant.settings, arguments))


def _of_run(path: Path) -> Contestant:
    folder = RunFolder(path)
    checkpoint, damaged = newest(folder.checkpoints)
    if checkpoint is not None:
        return replace(_of_checkpoint(checkpoint), name=_run_name(folder))
    if (folder.adapter / CONFIG).is_file():
        return Contestant(_run_name(folder), _of_config(folder.config), folder.adapter)
    raise ValueError(f"{shown(path)}: the run has left no checkpoint and no adapter. {' '.join(damaged)}".rstrip())


def _of_checkpoint(file: Path) -> Contestant:
    checkpoint = read_checkpoint(file)
    if not checkpoint.get("state_dict"):
        raise ValueError(f"{shown(file)} holds no adapter.")
    folder = RunFolder(file.resolve().parent.parent)
    if not folder.config.is_file():
        raise ValueError(
            f"{shown(file)}: a checkpoint holds the weights of the adapter and not its scale; "
            f"{folder.config.name} of its run, one folder above it, is missing. Use --adapter with a folder in PEFT's "
            "format instead."
        )
    return Contestant(f"{_run_name(folder)}-step{checkpoint['global_step']}", _of_config(folder.config), file)


def _of_adapter(folder: Path, model: str | None) -> Contestant:
    lora, base_model = described(folder)
    if model is None and not base_model:
        raise ValueError(f"{shown(folder)}: the adapter does not name its base model. Say --model.")
    place = folder.resolve()
    name = place.parent.name if place.name == RunFolder(place).adapter.name else place.name
    return Contestant(name, _settings({"path": base_model, "lora": lora}), folder)


def _run_name(folder: RunFolder) -> str:
    config = read_yaml(folder.config)
    return f"{config.get('condition', folder.path.name)}-seed{config.get('seed_everything', 0)}"


def _of_config(file: Path) -> dict[str, Any]:
    """Return the settings of the policy in a configuration; the defaults if it has none."""
    config = read_yaml(file)
    model = config.get("model") if isinstance(config, dict) else None
    if not isinstance(model, dict):
        raise ValueError(f"{shown(file)}: a configuration of a model holds model: {{policy: ...}}.")
    return _settings(model.get("policy") or {})


def _of_model(model: str) -> dict[str, Any]:
    if model.endswith((".yaml", ".yml")):
        return _of_config(Path(found(model)))
    return _settings({"path": model})


def _settings(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return a class and its arguments, however they were written."""
    if "class_path" in described:
        return {"class_path": described["class_path"], "init_args": dict(described.get("init_args") or {})}
    return {"class_path": f"{Policy.__module__}.{Policy.__name__}", "init_args": dict(described)}


def _merged(settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(settings["init_args"])
    for name, value in arguments.items():
        if isinstance(value, Mapping) and isinstance(merged.get(name), Mapping):
            merged[name] = {**merged[name], **value}
        elif value is not None:
            merged[name] = value
    return {**settings, "init_args": merged}


def _model_sha256(location: Path) -> str | None:
    """Identify the files of a local model; None for one on the hub."""
    if not location.is_dir():
        return None
    files = sorted(path for path in location.iterdir() if path.is_file() and not path.name.startswith("."))
    sizes = [(path.name, path.stat().st_size) for path in files]
    listed = [(name, size, file_sha256(location / name) if size <= SMALL else None) for name, size in sizes]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
