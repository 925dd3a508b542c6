"""Differences between the declared and the executed configuration, key by key, in plain words."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcredit.config import strict_yaml
from rlcredit.config.json_shapes import read_stored_json
from rlcredit.run_folder.layout import RunFolder

Flat = dict[str, Any]
"""Leaves of a configuration by their dotted paths; an empty list or mapping is a leaf."""

_ABSENT_VALUE = "nothing"


_NEW_DEFAULTS = {"deterministic": True, "micro_batch_tokens": "auto"}
"""Defaults of arguments that were None in campaigns which still go on."""


def flatten_config(node: Any, path: str = "") -> Flat:
    """Return the leaves of a configuration by their dotted paths.

    Example:
        >>> flatten_config({"model": {"betas": [0.9, 0.95], "config": {}}})
        {'model.betas[0]': 0.9, 'model.betas[1]': 0.95, 'model.config': {}}

    """
    if isinstance(node, dict) and node:
        parts = {f"{path}.{key}" if path else str(key): value for key, value in node.items()}
    elif isinstance(node, list) and node:
        parts = {f"{path}[{place}]": value for place, value in enumerate(node)}
    else:
        return {path: node}
    return {name: leaf for part, value in parts.items() for name, leaf in flatten_config(value, part).items()}


def hash_config(config: Any) -> str:
    """Return a hash of a configuration's leaves."""
    return hashlib.sha256(json.dumps(flatten_config(config), sort_keys=True).encode()).hexdigest()


def list_differences(old_config: Any, new_config: Any, names: tuple[str, str] = ("declared", "executed")) -> list[str]:
    """Return one line for each leaf that differs, with both values; types count, so 1 is not true.

    An argument that one side does not have is equal to its default on
    the other if this is None, or the default that took the place of None.

    Args:
        old_config: Nested mappings and lists that were declared.
        new_config: Nested mappings and lists that were executed.
        names: Names of the two in the lines returned.

    Example:
        >>> list_differences({"model": {"lr": 0.1, "eta": 0.5}}, {"model": {"lr": 0.1}})
        ['model.eta: declared 0.5, executed nothing']
        >>> list_differences({"lr": 0.1}, {"lr": 0.1, "rewards": None, "deterministic": True})
        []

    """
    old_leaves, new_leaves = flatten_config(old_config), flatten_config(new_config)

    def meaning(leaves: Mapping[str, Any], name: str) -> str:
        value = leaves.get(name)
        if value is None or _NEW_DEFAULTS.get(name.rpartition(".")[2]) == value:
            return _ABSENT_VALUE
        return shown(leaves, name)

    def shown(leaves: Mapping[str, Any], name: str) -> str:
        return repr(leaves[name]) if name in leaves else _ABSENT_VALUE

    return [
        f"{name}: {names[0]} {shown(old_leaves, name)}, {names[1]} {shown(new_leaves, name)}"
        for name in dict.fromkeys([*old_leaves, *new_leaves])
        if meaning(old_leaves, name) != meaning(new_leaves, name)
    ]


def list_run_differences(folder: Path, declared_config: Any, parameters: Mapping[str, Any]) -> list[str]:
    """Compare the configuration and parameters stored by a run with what was declared for it.

    Args:
        folder: Folder of the run.
        declared_config: Resolved configuration that was declared for the run.
        parameters: Parameters that the instantiated objects should report.

    """
    config, parameters_file = RunFolder(folder).config, RunFolder(folder).parameters
    if missing := [file.name for file in (config, parameters_file) if not file.is_file()]:
        return [f"{', '.join(missing)}: not written, so nobody knows what was executed"]
    run_config = strict_yaml.read_yaml(config)
    run_parameters = read_stored_json(parameters_file, dict, "Remove the folder of the run; it is then made anew.")
    declared_parameters = json.loads(json.dumps(parameters))
    lines = [f"instantiated {line}" for line in list_differences(declared_parameters, run_parameters)]
    return list_differences(declared_config, run_config) + lines
