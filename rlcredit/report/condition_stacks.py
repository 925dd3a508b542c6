"""The stack of every condition of a campaign, and what else differs from the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlcredit.campaign.config_differences import flatten_config, list_differences
from rlcredit.pages.number_formats import NO_VALUE
from rlcredit.pages.tables import Table
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.verification.reward_functions import describe_rewards, read_reward_functions

_RUN_SETTINGS = ("condition", "seed_everything", "threads", "trainer.callbacks", "trainer.default_root_dir")
"""Settings that are no difference beside the stack."""

_PLAIN_REWARDS = "one for right, zero for wrong"

_STACK_HEAD = "stack, first operator first"

Call = tuple[str, Mapping[str, str]]
"""Class of an operator, and its arguments as text."""


def make_stack_table(evidence: CampaignEvidence) -> Table:
    """Return the table of every condition: its stack, and the other settings in which it differs from the baseline.

    Arguments that an operator has wherever it stands are said once, below the table.
    """
    configs, baseline = evidence.ledger.content["configs"], evidence.declaration.baseline
    stacks = {name: list(list_config_calls(configs[name])) for name in evidence.declaration.conditions}
    common = find_common_arguments([call for stack in stacks.values() for call in stack])
    rows = [
        (name, format_stack(stack, common), _format_differences(configs, name, baseline))
        for name, stack in stacks.items()
    ]
    head = f"what else differs from {baseline}"
    common_text = ", ".join(_format_call(name, arguments) for name, arguments in common.items() if arguments)
    notes = [f"The same wherever it stands: {common_text}."] if common_text else []
    note = " ".join([*notes, *describe_condition_rewards({name: configs[name] for name, *_ in rows})])
    return Table(("condition", _STACK_HEAD, head), rows, (_STACK_HEAD, head), note=note)


def describe_condition_rewards(configs: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about the rewards of conditions; none where all are one for right and zero for wrong.

    Args:
        configs: Resolved configurations by condition.

    Example:
        >>> list(describe_condition_rewards({"flat": {"data": {"init_args": {"rewards": ["mine.length"]}}}}))
        ['Rewards: mine.length; right is a reward of 1 or more.']

    """
    names_by_text: dict[str, list[str]] = {}
    for name, config in configs.items():
        task = config.get("data", {}).get("init_args") or {}
        functions = task.get("rewards")
        text = _PLAIN_REWARDS
        if functions:
            text = describe_rewards(read_reward_functions(functions), task.get("solved_at", 1.0))
        names_by_text.setdefault(text, []).append(name)
    for text, names in names_by_text.items() if {*names_by_text} != {_PLAIN_REWARDS} else ():
        of_some = "" if len(names_by_text) == 1 else f" of {', '.join(names)}"
        yield f"Rewards{of_some}: {text}."


def list_config_calls(config: Mapping[str, Any]) -> Iterator[Call]:
    """Yield the callbacks of a resolved configuration in their order, as calls."""
    callbacks = config.get("trainer", {}).get("callbacks") or []
    for entry in callbacks if isinstance(callbacks, list) else [callbacks]:
        path, arguments = (entry["class_path"], entry.get("init_args")) if isinstance(entry, Mapping) else (entry, {})
        yield path.rpartition(".")[2], {key: _format_value(value) for key, value in (arguments or {}).items()}


def find_common_arguments(calls: Sequence[Call]) -> dict[str, dict[str, str]]:
    """Return the arguments that every call of a class shares, by class.

    Example:
        >>> find_common_arguments([("GTPO", {"beta": "0.1"}), ("GTPO", {"beta": "0.2"}), ("GRPO", {"eps": "0"})])
        {'GTPO': {}, 'GRPO': {'eps': '0'}}

    """
    common: dict[str, dict[str, str]] = {}
    for name, arguments in calls:
        common_arguments = common.setdefault(name, dict(arguments))
        common[name] = {key: value for key, value in common_arguments.items() if arguments.get(key) == value}
    return common


def format_stack(stack: Sequence[Call], common: Mapping[str, Mapping[str, str]]) -> str:
    """Return a stack as calls, without the arguments that are said elsewhere.

    Example:
        >>> format_stack([("GRPO", {"eps": "0"}), ("GTPO", {"beta": "0.1"})], {"GRPO": {"eps": "0"}})
        'GRPO → GTPO(beta=0.1)'

    """
    calls = (
        _format_call(name, {key: value for key, value in arguments.items() if key not in common.get(name, {})})
        for name, arguments in stack
    )
    return " \N{RIGHTWARDS ARROW} ".join(calls) or NO_VALUE


def _format_call(name: str, arguments: Mapping[str, str]) -> str:
    text = ", ".join(f"{key}={value}" for key, value in arguments.items())
    return f"{name}({text})" if text else name


def _format_value(value: Any) -> str:
    """Return an argument as text; a class with its own arguments as a call."""
    if isinstance(value, Mapping) and "class_path" in value:
        texts = {key: _format_value(argument) for key, argument in (value.get("init_args") or {}).items()}
        return _format_call(value["class_path"].rpartition(".")[2], texts)
    return repr(value)


def _format_differences(configs: Mapping[str, Any], name: str, baseline: str) -> str:
    """Return the settings beside the stack in which a condition differs, with the baseline's value in brackets."""
    if name == baseline:
        return "the baseline"
    names = (line.partition(": ")[0] for line in list_differences(configs[baseline], configs[name]))
    leaves, baseline_leaves = flatten_config(configs[name]), flatten_config(configs[baseline])
    lines = (
        f"{key}: {leaves.get(key, NO_VALUE)} ({baseline_leaves.get(key, NO_VALUE)})"
        for key in names
        if not key.startswith(_RUN_SETTINGS)
    )
    return "; ".join(lines) or "nothing"
