"""What a campaign declares, and which declarations are refused."""

import dataclasses
import difflib
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from rlcredit.campaign.validation import ComparisonFamily, parse_declared_values
from rlcredit.inputs import strict_yaml
from rlcredit.inputs.passwords import refuse_passwords

ALPHA = 0.05
"""Chance that a campaign finds a difference where there is none."""

FOLDER_OF_CONDITION = re.compile(r"(?<![^/])(configs/conditions/)[^/]+/(?=[^/]+$)")


@dataclasses.dataclass(frozen=True)
class CampaignDeclaration:
    """All that is decided before the first run.

    Args:
        name: of the campaign and its folder.
        configs: common to all runs.
        conditions: overlays of each condition, in the order they are applied.
        baseline: compared with all others if no families are given; the plan counts its samples.
        families: what is compared instead, by the question each answers.
        seeds: one run of every condition each; the runs of a seed are pairs.
        steps: optimizer steps of every run.
        primary: held-out metric compared, of the evaluation after the last step.
        effect: smallest difference of it that would matter, in its unit.
        deviation: expected standard deviation of paired differences of it, if known.
        exploratory: whether so few seeds are wanted although they cannot reach a verdict.
        settings: on top of all files, by dotted keys.

    """

    name: str
    configs: tuple[str, ...]
    conditions: dict[str, tuple[str, ...]]
    baseline: str
    seeds: tuple[int, ...]
    steps: int
    primary: str
    effect: float
    deviation: float | None = None
    exploratory: bool = False
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    families: dict[str, ComparisonFamily] = dataclasses.field(default_factory=dict)

    @property
    def comparison_families(self) -> dict[str, ComparisonFamily]:
        """Return the families of comparisons; the report corrects them all together."""
        others = tuple(name for name in self.conditions if name != self.baseline)
        return self.families or ({"all": ComparisonFamily(self.baseline, others)} if others else {})

    @property
    def sha256(self) -> str:
        """Identify the declaration by its content, not by how the file is written."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON would give it back; a shipped condition is its name, in whichever folder it lies."""
        conditions = {name: [drop_condition_folder(file) for file in files] for name, files in self.conditions.items()}
        return json.loads(json.dumps({**dataclasses.asdict(self), "conditions": conditions}))

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "CampaignDeclaration":
        """Return the declaration that ``plain`` has written; its files need not exist any more."""
        families = {
            name: ComparisonFamily(family["baseline"], tuple(family["conditions"]))
            for name, family in plain["families"].items()
        }
        conditions = {name: tuple(files) for name, files in plain["conditions"].items()}
        listed = {key: tuple(plain[key]) for key in ("configs", "seeds")}
        return cls(**{**plain, **listed, "families": families, "conditions": conditions})


def drop_condition_folder(file: str) -> str:
    """Leave out the folder of a shipped condition: moving it to another folder does not change a declaration.

    Example:
        >>> drop_condition_folder("configs/conditions/sepa_paper/c1_grpo.yaml"), drop_condition_folder("my/c1_grpo.yaml")
        ('configs/conditions/c1_grpo.yaml', 'my/c1_grpo.yaml')

    """
    return FOLDER_OF_CONDITION.sub(r"\1", file)


def read_declaration(path: Path) -> CampaignDeclaration:
    """Read a campaign file.

    Raises:
        ValueError: with what is wrong in it and the repair.

    """
    content = strict_yaml.read_yaml(path)
    try:
        refuse_passwords(content)
        return parse_declaration(content)
    except ValueError as error:
        raise ValueError(f"{strict_yaml.shorten_name(path)}: {error}") from None


def parse_declaration(content: Any) -> CampaignDeclaration:
    """Check the content of a campaign file."""
    fields = {field.name: field for field in dataclasses.fields(CampaignDeclaration)}
    if not isinstance(content, dict):
        raise ValueError(f"a campaign is a mapping with the keys {', '.join(fields)}.")
    for key in content:
        if key not in fields:
            close = difflib.get_close_matches(str(key), fields, n=1)
            meant = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"{key}: no such key.{meant} There are {', '.join(fields)}.")
    needed = [name for name, field in fields.items() if field.default is field.default_factory]
    if missing := [name for name in needed if name not in content]:
        raise ValueError(f"{', '.join(missing)}: not declared. What is not fixed before the first run is not a test.")
    return CampaignDeclaration(**parse_declared_values(content))
