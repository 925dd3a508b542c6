"""Options that a configuration cannot have, told without an import, and those that are meant."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.messages import find_closest_name
from rlcredit.cli.run_options import OPTION_SECTIONS
from rlcredit.cli.source_options import read_class_parameters
from rlcredit.config.arguments import CONFIG_KEYS, CommandParser, join_alternatives
from rlcredit.config.module_source import CALLBACKS_PACKAGE
from rlcredit.config.reader import SWITCH_OPTIONS, name_entry, walk_key_paths

OPTION_SYNONYMS = {
    "steps": "trainer.max_steps",
    "batch_size": "data.init_args.prompts_per_step",
    "learning_rate": "model.optimizer.init_args.lr",
    "lr": "model.optimizer.init_args.lr",
    "num_generations": "model.sampling.completions",
    "group_size": "model.sampling.completions",
    "max_completion_length": "model.sampling.max_tokens",
    "per_device_train_batch_size": "data.init_args.prompts_per_step",
    "epochs": "trainer.max_steps",
    "gpus": "trainer.devices",
    "resume": "ckpt_path",
    "resume_from_checkpoint": "ckpt_path",
    "lora_r": "model.policy.lora.rank",
    "r": "model.policy.lora.rank",
    "k": "model.pass_k",
    "seed": "seed_everything",
}
"""What other trainers call our options."""

OPEN_SECTIONS = ("data.init_args", "checkpoint")
"""Sections that have more options than the help tells: those of each task, and of Lightning's ModelCheckpoint."""

CLOSED_SECTIONS = {key for key, _, _ in OPTION_SECTIONS.values()} - {*OPEN_SECTIONS}
"""Sections all of whose options are in the help."""

UNTOLD_OPTIONS = ("verbose", "weights_only")
"""Options of Lightning's that no help tells."""

MAX_ALTERNATIVES = 2
"""Options of one name that a message lists."""


def explain_unknown_option(words: Sequence[str], values: Mapping[str, Any], parser: CommandParser) -> str | None:
    """Return a sentence on the first option that no configuration has; None where only an import would tell.

    Args:
        words: Words of the command line.
        values: Configuration that they make, with the options that do not exist.
        parser: Parser that describes the options of a configuration.

    """
    options = [option.removeprefix("--") for option in parser.options]
    for flag in (word.partition("=")[0] for word in words if word.startswith("--")):
        name = flag.removeprefix("--").removesuffix("+")
        if _may_exist(name, options):
            continue
        settings = [setting for setting in _list_settings(values) if _may_exist(setting, options)]
        names = [*options, *settings, *_list_stack_arguments(values)]
        spelling = name.replace("-", "_")
        synonym, option = find_synonym(flag), parser.find_meant_option(f"--{spelling}")
        meanings = [synonym] if synonym else [f"--{word}" for word in _find_meant_options(spelling, names, values)]
        if not meanings and option and "." not in f"{name}{option}":
            meanings = [option]
        question = f"Did you mean {join_alternatives([f'`{meaning}`' for meaning in meanings])}?" if meanings else ""
        return f"{flag}: no such option. {question or f'`{parser.prog} --help` lists those that there are.'}"
    return None


def find_synonym(flag: str) -> str | None:
    """Return the option that other trainers call by a flag.

    Example:
        >>> find_synonym("--learning-rate"), find_synonym("--trainer.epochs"), find_synonym("--max_steps")
        ('--model.optimizer.init_args.lr', '--trainer.max_steps', None)

    """
    name = OPTION_SYNONYMS.get(flag.removeprefix("--").rpartition(".")[2].replace("-", "_"))
    return f"--{name}" if name else None


def _may_exist(name: str, options: Sequence[str]) -> bool:
    """Whether a configuration may have an option; certain up to a class that can be replaced."""
    parts = name.split(".")
    if parts[0] not in {
        *(option.partition(".")[0] for option in options),
        *CONFIG_KEYS,
        *SWITCH_OPTIONS,
        *UNTOLD_OPTIONS,
    }:
        return False
    prefixes = (".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
    section = next((prefix for prefix in prefixes if prefix in CLOSED_SECTIONS), None)
    if section is None:
        return True
    setting = f"{section}.{parts[section.count('.') + 1]}"
    return any(f"{option}.".startswith(f"{setting}.") for option in options)


def _find_meant_options(name: str, names: Sequence[str], values: Mapping[str, Any]) -> Sequence[str]:
    """Return the options that an unknown one may mean: by its spelling, by an operator, by its last part.

    Args:
        name: Name of the unknown option.
        names: Names of options and settings that there are.
        values: Configuration, for the names in its stack.

    """
    head, *inner_parts = name.split(".")
    tail = name.rpartition(".")[2]
    heads = [option.partition(".")[0] for option in names]
    if inner_parts and (close := _repair_parts([head, *inner_parts], names)):
        return [close]
    if not find_closest_name(head, heads) and (entry := find_closest_name(head, _list_stack_names(values), 0.75)):
        parts = ["trainer", "callbacks", entry, *inner_parts]
        return [_repair_parts(parts, names) or ".".join(parts)]
    places = [option for option in dict.fromkeys(names) if option.rpartition(".")[2] == tail]
    depth = min((option.count(".") for option in places), default=0)
    nearest = [option for option in places if option.count(".") == depth]
    return nearest if len(nearest) <= MAX_ALTERNATIVES else []


def _repair_parts(parts: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the name whose parts are like those of another, one after the other; None if there is none."""
    prefix = ""
    for part in parts:
        endings = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        if (close := find_closest_name(part, [ending.partition(".")[0] for ending in endings])) is None:
            return None
        prefix += f"{close}."
    return prefix.removesuffix(".")


def _list_settings(values: Mapping[str, Any]) -> list[str]:
    """Return the dotted names of all that a configuration sets, but for what is in lists."""
    paths = [path for path, value in walk_key_paths(values) if not isinstance(value, dict)]
    return [".".join(map(str, path)) for path in paths if not any(isinstance(part, int) for part in path)]


def _list_stack_arguments(values: Mapping[str, Any]) -> list[str]:
    """Return the dotted names of the arguments of shipped operators in the stack, from their sources."""
    package = importlib.util.find_spec(CALLBACKS_PACKAGE)
    folders = [Path(folder) for folder in (package and package.submodule_search_locations) or ()]
    files = {file.stem.replace("_", ""): file for folder in folders for file in folder.glob("*/*.py")}
    pairs = [(name, files[name.lower()]) for name in _list_stack_names(values) if name.lower() in files]
    return [
        f"trainer.callbacks.{name}.{parameter.name}"
        for name, file in pairs
        if f"class {name}(" in file.read_text(encoding="utf-8")
        for parameter in read_class_parameters(f"{CALLBACKS_PACKAGE}.{file.parent.name}.{file.stem}", name)
    ]


def _list_stack_names(values: Mapping[str, Any]) -> list[str]:
    trainer = values.get("trainer")
    stack = trainer.get("callbacks") if isinstance(trainer, Mapping) else None
    return [name_entry(entry) for entry in stack] if isinstance(stack, list) else []
