"""The definition of a metric: two numbers are compared only if both measure the same."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rlcredit.campaign.config_differences import flatten_config, list_differences
from rlcredit.campaign.declaration import CampaignDeclaration

_TRAINING_ARGUMENTS = (
    *("prompts_per_step", "train_size", "validation_batch", "train", "train_split"),
    *("held_out", "unsafe_scorers", "verify_budget"),
)
"""Arguments of a task that do not touch its held-out questions, nor which answers to them are right."""

_NEUTRAL_ARGUMENTS = {
    **{"system": None, "shots": [], "held_out_completions": None, "held_out_k": None},
    **{"tolerance": 0.0, "verifier": None, "rewards": None, "solved_at": 1.0},
}
"""Arguments of a task that change nothing at these values, and are left out of its settings then."""


_MODEL_SETTINGS = ("validation", "pass_k", "validation_seed")


@dataclasses.dataclass(frozen=True)
class MetricDefinition:
    """A metric with the outcomes it summarises and the settings under which they were obtained.

    Args:
        name: Name of the metric, for instance ``val/pass_at_1``.
        over: Outcomes that the metric summarises, in words.
        settings: Settings under which the outcomes were obtained, by dotted keys.

    """

    name: str
    over: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def define_held_out_metric(declaration: CampaignDeclaration, config: Mapping[str, Any]) -> MetricDefinition:
    """Return the definition of the primary metric under a condition.

    Args:
        declaration: Declaration of the campaign.
        config: Resolved configuration of the condition.

    """
    task = {
        key: value
        for key, value in config["data"]["init_args"].items()
        if key not in _TRAINING_ARGUMENTS and (key, value) not in _NEUTRAL_ARGUMENTS.items()
    }
    if declaration.held_out.questions == "by_seed":
        task["generator_seed"] = "by_seed"
    settings = {"data": {**config["data"], "init_args": task}}
    model = config["model"]
    settings["model"] = {"validation_seed": 0} | {key: model[key] for key in _MODEL_SETTINGS if key in model}
    return MetricDefinition(declaration.primary, describe_outcomes(declaration), flatten_config(settings))


def describe_outcomes(declaration: CampaignDeclaration) -> str:
    """Return in words the outcomes that a campaign's primary metric summarises."""
    return f"held-out questions {declaration.span_label}"


def list_metric_differences(
    definition: MetricDefinition, other_definition: MetricDefinition, names: tuple[str, str]
) -> list[str]:
    """Return the differences between two metric definitions; none if the metrics can be compared.

    Args:
        definition: Definition of one metric.
        other_definition: Definition of another metric.
        names: Names of the two in the lines returned.

    Example:
        >>> running = MetricDefinition("solve rate", "all training batches so far")
        >>> list_metric_differences(running, MetricDefinition("solve rate", "the last training batch"), ("4B", "30B"))
        ["over: 4B 'all training batches so far', 30B 'the last training batch'"]

    """
    return list_differences(dataclasses.asdict(definition), dataclasses.asdict(other_definition), names)
