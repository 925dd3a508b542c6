"""Test policies of cards, each a configuration of a policy with its task, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcredit.base.messages import suggest_name
from rlcredit.cards.card_options import USUAL_ORGANISM
from rlcredit.cli.application import read_expanded_config
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.paths import find_config_file, find_configs_folder
from rlcredit.config.strict_yaml import shorten_name

BASE_CONFIG = "tiny.yaml"
"""Configuration that every shipped test policy is a variant of; by itself it is the first of them."""

POLICY_MEANINGS = {
    "aligned": "A model organism of 172,576 parameters that adds 3 to 5 one-digit terms. It is uncertain exactly where "
    "its answer is decided, so credit for uncertain tokens is right by construction.",
    "aligned_1": "The policy aligned, made again with a second seed. What holds on one of the two and not on the "
    "other is an accident of its weights.",
    "aligned_2": "The policy aligned, made again with a third seed. What holds on one of them and not on the others "
    "is an accident of its weights.",
    "backward": "A model organism of 172,576 parameters that spells words backward. Its first token chooses a way, and "
    "the first letter of the answer decides whether it is right.",
    "decoy": "A model organism of 172,576 parameters that adds 3 to 5 one-digit terms. It is most uncertain at fillers "
    "that decide nothing, so credit for uncertain tokens is misled.",
    "delayed": "A model organism of 172,576 parameters that adds 3 or 4 one-digit terms. Its mistake comes early, when "
    "it restates the problem, and shows some eighty tokens later.",
    "hinted": "A model organism of 172,576 parameters that adds 5 or 6 one-digit terms and is mostly wrong. Where the "
    "question comes with its answer it is mostly right, so credit from hints has something to read.",
    "long_chains": "A model organism of 172,576 parameters that adds 6 to 8 one-digit terms. It resembles aligned, "
    "with twice the places where a sum can go wrong.",
    "many_fillers": "A model organism of 172,576 parameters that adds 7 one-digit terms, right in 8 % of its answers. "
    "Six words decide them, among thirty fillers that do not.",
}
"""What the shipped test policies are, in a sentence or two."""


@dataclass(frozen=True)
class CardPolicy:
    """A test policy: a policy and its task.

    Args:
        name: Name in tables.
        origin: How the policy was named on the command line.
        files: Configuration files that describe it.

    """

    name: str
    origin: str
    files: Sequence[str]


def list_policy_names() -> list[str]:
    """Return the names of the shipped test policies."""
    return [USUAL_ORGANISM, *sorted(file.stem for file in (find_configs_folder() / "organisms").glob("*.yaml"))]


def resolve_card_policy(name: str) -> CardPolicy:
    """Return the test policy that a name on the command line refers to.

    Args:
        name: Name of a shipped test policy, or a file with a whole configuration.

    Raises:
        ValueError: there is none; with those that there are.

    """
    if name == USUAL_ORGANISM:
        return CardPolicy(name, name, (str(find_configs_folder() / BASE_CONFIG),))
    if name in list_policy_names():
        return CardPolicy(
            name,
            name,
            (str(find_configs_folder() / BASE_CONFIG), str(find_configs_folder() / "organisms" / f"{name}.yaml")),
        )
    file = Path(find_config_file(name))
    if name.endswith((".yaml", ".yml")) and file.is_file():
        if file.stem in (*list_policy_names(), "arms"):
            raise ValueError(
                f"--organism: {shorten_name(name)}: that name is taken. Rename the file, or say {file.stem}."
            )
        content = read_expanded_config(file)
        if not isinstance(content, dict) or not isinstance(content.get("trainer") or {}, dict):
            raise ValueError(f"--organism: {shorten_name(name)} needs model, data and trainer, each a mapping.")
        return CardPolicy(validate_folder_name("--organism", file.stem), name, (str(file),))
    raise ValueError(
        f"--organism: there is no {shorten_name(name)}.{suggest_name(name, list_policy_names())} There "
        f"are {', '.join(list_policy_names())}, or name a .yaml file with model, data and optimizer. "
        "Operators stand before --organism."
    )


def select_card_policies(names: Sequence[str]) -> list[CardPolicy]:
    """Return the test policies with some names, ``all`` for all that are shipped, each once.

    Raises:
        ValueError: there is no such test policy, or two of them share a name.

    """
    unique_names = dict.fromkeys(
        policy_name for name in names for policy_name in (list_policy_names() if name == "all" else [name])
    )
    by_name: dict[str, CardPolicy] = {}
    for policy in map(resolve_card_policy, unique_names):
        if (namesake := by_name.setdefault(policy.name, policy)) != policy:
            origins = f"{shorten_name(namesake.origin)} and {shorten_name(policy.origin)}"
            raise ValueError(f"--organism: {origins} share a name. Rename one.")
    return list(by_name.values())
