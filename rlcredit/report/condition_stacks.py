"""The stack of every condition of a campaign, and what else differs from the baseline."""

from collections.abc import Mapping
from typing import Any

from rlcredit.campaign.config_differences import list_differences
from rlcredit.pages.number_formats import NONE
from rlcredit.pages.tables import Table
from rlcredit.report.evidence import CampaignEvidence

OWN = ("condition", "seed_everything", "threads", "trainer.callbacks", "trainer.default_root_dir")
"""Settings that are no difference beside the stack."""


def make_stack_table(evidence: CampaignEvidence) -> Table:
    """Return the table of every condition: its stack, and the other settings in which it differs from the baseline."""
    configs, baseline = evidence.ledger.content["configs"], evidence.declaration.baseline
    rows = [
        (name, format_config_stack(configs[name]), _format_differences(configs, name, baseline))
        for name in evidence.declaration.conditions
    ]
    head = f"what else differs from {baseline}"
    return Table(("condition", "stack, first operator first", head), rows, ("stack, first operator first", head))


def format_config_stack(config: Mapping[str, Any]) -> str:
    """Return the callbacks of a resolved configuration as calls, in their order.

    Example:
        >>> gtpo = {"class_path": "callbacks.tokens.gtpo.GTPO", "init_args": {"beta": 0.1}}
        >>> format_config_stack({"trainer": {"callbacks": [{"class_path": "callbacks.GRPO"}, gtpo]}})
        'GRPO > GTPO(beta=0.1)'

    """
    callbacks = config.get("trainer", {}).get("callbacks") or []
    entries = callbacks if isinstance(callbacks, list) else [callbacks]
    return " > ".join(map(_format_entry, entries)) or NONE


def _format_entry(entry: Any) -> str:
    """Return a class with its arguments as a call; other values as Python writes them."""
    if not (isinstance(entry, Mapping) and "class_path" in entry):
        return entry.rpartition(".")[2] if isinstance(entry, str) else repr(entry)
    name, arguments = entry["class_path"].rpartition(".")[2], entry.get("init_args") or {}
    words = (
        f"{key}={_format_entry(value) if isinstance(value, Mapping) else repr(value)}"
        for key, value in arguments.items()
    )
    inside = ", ".join(words)
    return f"{name}({inside})" if inside else name


def _format_differences(configs: Mapping[str, Any], name: str, baseline: str) -> str:
    """Return the settings beside the stack in which a condition differs, with both values."""
    if name == baseline:
        return "the baseline"
    lines = list_differences(configs[baseline], configs[name], (baseline, name))
    return "; ".join(line for line in lines if not line.startswith(OWN)) or "nothing"
