"""The declaration of a campaign: its keys, the values they accept, and the errors for all others."""

import dataclasses
import difflib
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from rlcredit.base.files import is_existing_file
from rlcredit.config import strict_yaml
from rlcredit.config.allowed_values import SEED_COUNT, validate_folder_name
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.paths import find_config_file
from rlcredit.config.strict_yaml import shorten_name

PRIMARY = ("val/pass_at_1", "val/pass_at_k")
"""Shares of held-out questions, of which more is better; a metric of training batches depends on their prompts."""

RESERVED = ("report", "ledger.json", "lock", "settings.yaml", "timings.json")
"""Files and folders of a campaign that no condition may be named like."""

ELSEWHERE = {
    "trainer.max_steps": "`steps`",
    "seed_everything": "`seeds`",
    "condition": "the names under `conditions`",
    "trainer.default_root_dir": "`name`, condition and seed",
    "checkpoint.dirpath": "`name`, condition and seed",
    "threads": "the option --threads",
    "ckpt_path": "the runs themselves: an interrupted one is continued",
}
"""Settings that a campaign makes itself, and what it takes them from."""


@dataclasses.dataclass(frozen=True)
class ComparisonFamily:
    """Comparisons that answer one question; p-values are adjusted over the families of a campaign together.

    Args:
        baseline: Condition with which the others are compared.
        conditions: Conditions compared with the baseline.

    """

    baseline: str
    conditions: tuple[str, ...]


BUDGETS = {"decoded_tokens": "decoded", "backward_tokens": "backward"}
"""Exact counts that a budget may be declared in, and their names in :class:`rlcredit.credit.token_counts.TokenCounts`;
floating-point operations could only be estimated."""


Sharing = Literal["shared", "by_seed"]


@dataclasses.dataclass(frozen=True)
class DeclaredBudget:
    """Tokens after which every run ends, in place of a number of steps.

    Args:
        decoded_tokens: Tokens decoded for training; this or ``backward_tokens`` is given.
        backward_tokens: Tokens of updates.
        evaluations: Number of evaluations after the first step, at equal shares of the budget.

    """

    decoded_tokens: int | None = None
    backward_tokens: int | None = None
    evaluations: int = 4

    @property
    def key(self) -> str:
        """Key under which the budget is declared."""
        return "decoded_tokens" if self.decoded_tokens is not None else "backward_tokens"

    @property
    def counter(self) -> str:
        """Name of the count that must reach the budget."""
        return BUDGETS[self.key]

    @property
    def tokens(self) -> int:
        """Tokens after which every run ends."""
        return getattr(self, self.key)

    @property
    def unit(self) -> str:
        """Unit of the budget in words."""
        return f"{self.key.removesuffix('_tokens')} tokens"

    @property
    def marks(self) -> list[int]:
        """Tokens at which runs are evaluated, from zero to the whole budget; each by the first step at or over it."""
        return [-(-self.tokens * share // self.evaluations) for share in range(self.evaluations + 1)]


@dataclasses.dataclass(frozen=True)
class ReachedLevel:
    """Summary of a run: how soon its held-out curve first reaches a level, between evaluations on a straight line.

    It is the share of the run that is left then, so that more is better, and zero where the level is never reached. A
    run is as long as its steps, or as its budget of tokens.

    Args:
        level: Value of the primary metric that must be reached, between 0 and 1.

    """

    level: float


@dataclasses.dataclass(frozen=True)
class HeldOutChoice:
    """What seeds share of the held-out evaluation; the runs of one seed share all of it.

    Args:
        questions: ``shared`` by all seeds, or ``by_seed``: generated anew for each, as are the training questions.
        draws: Sampling noise of held-out answers: the same for all seeds as ``model.validation_seed`` says
            (``shared``), or ``by_seed``.

    """

    questions: Sharing = "shared"
    draws: Sharing = "shared"


Summary = Literal["end", "area"] | ReachedLevel


def parse_declared_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert declared values to the types of a declaration."""
    values = {key: CHECKS[key](key, value) for key, value in content.items()}
    named = {"baseline": [values["baseline"]]}
    for name, family in values.get("families", {}).items():
        named[f"families.{name}"] = [family.baseline, *family.conditions]
    for key, names in named.items():
        if unknown := [name for name in names if name not in values["conditions"]]:
            declared = ", ".join(values["conditions"])
            raise ValueError(f"{key}: there is no condition {unknown[0]!r}. There are {declared}.")
    return values


def _parse_files(key: str, value: Any) -> tuple[str, ...]:
    files = [value] if isinstance(value, str) else value
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise ValueError(f"{key}: expected a file or a list of files, got {value!r}.")
    return tuple(files)


def _parse_conditions(key: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{key}: expected a mapping from names of conditions to their files, got {value!r}.")
    for name in value:
        if name in RESERVED:
            raise ValueError(
                f"{key}: {name} is the name of a file of the campaign itself. Give the condition another name."
            )
    return {validate_folder_name(key, name): _parse_files(f"{key}.{name}", files) for name, files in value.items()}


def _parse_families(key: str, value: Any) -> dict[str, ComparisonFamily]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: expected a mapping from names of families to their comparisons, got {value!r}.")
    for name in value:
        if not isinstance(name, str) or not name.isprintable() or set(name) & set("<>|[]#"):
            raise ValueError(
                f"{key}: {name!r} must be one line without < > | [ ] #, since it becomes a heading of the report."
            )
    return {name: _parse_family(f"{key}.{name}", family) for name, family in value.items()}


def _parse_family(key: str, value: Any) -> ComparisonFamily:
    if not isinstance(value, dict) or set(value) != {"baseline", "conditions"}:
        raise ValueError(f"{key}: expected {{baseline: NAME, conditions: [NAME, ...]}}, got {value!r}.")
    baseline, names = value["baseline"], value["conditions"]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in [baseline, *names]):
        raise ValueError(f"{key}: expected names of conditions, with at least one to compare, got {value!r}.")
    if len({baseline, *names}) <= len(names):
        raise ValueError(f"{key}: a condition occurs twice. Remove one.")
    return ComparisonFamily(baseline, tuple(names))


def _parse_seeds(key: str, value: Any) -> tuple[int, ...]:
    if (
        not isinstance(value, list)
        or not value
        or not all(type(seed) is int and 0 <= seed < SEED_COUNT for seed in value)
    ):
        raise ValueError(f"{key}: expected a list of numbers from 0 to {SEED_COUNT - 1}, got {value!r}.")
    if repeated := [seed for seed, count in Counter(value).items() if count > 1]:
        raise ValueError(f"{key}: {repeated[0]} occurs twice, and one run must not count twice. Remove one.")
    return tuple(value)


def _parse_steps(key: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{key}: expected a number of optimizer steps, at least 1, got {value!r}.")
    return value


def _parse_budget(key: str, value: Any) -> DeclaredBudget | None:
    if value is None:
        return None
    allowed = [*BUDGETS, "evaluations"]
    given = {name: tokens for name, tokens in value.items() if tokens is not None} if isinstance(value, dict) else {}
    counted = [name for name in given if name in BUDGETS]
    if not set(given) <= set(allowed) or len(counted) != 1:
        raise ValueError(
            f"{key}: expected {{{' | '.join(BUDGETS)}: NUMBER, evaluations: NUMBER}} with one of the first, got "
            f"{value!r}. Only exact counts can be a budget."
        )
    if odd := [name for name, number in given.items() if type(number) is not int or number < 1]:
        raise ValueError(f"{key}.{odd[0]}: expected a whole number, at least 1, got {given[odd[0]]!r}.")
    if given.get("evaluations", 1) > given[counted[0]]:
        raise ValueError(f"{key}.evaluations: expected at most one per token, got {given['evaluations']}.")
    return DeclaredBudget(**given)


def _parse_primary(key: str, value: Any) -> str:
    if value not in PRIMARY:
        raise ValueError(f"{key}: expected a held-out metric, one of {', '.join(PRIMARY)}, got {value!r}.")
    return value


def _parse_summary(key: str, value: Any) -> Summary:
    if value in ("end", "area"):
        return value
    level = value.get("level") if isinstance(value, dict) and set(value) == {"level"} else None
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not 0 < level < 1:
        raise ValueError(f"{key}: expected end, area, or {{level: SHARE}} with a share between 0 and 1, got {value!r}.")
    return ReachedLevel(float(level))


def _parse_held_out(key: str, value: Any) -> HeldOutChoice:
    choices = get_args(Sharing)
    known = isinstance(value, dict) and set(value) <= {"questions", "draws"}
    if not known or any(choice not in choices for choice in value.values()):
        raise ValueError(f"{key}: expected {{questions: by_seed, draws: by_seed}}, or shared, got {value!r}.")
    return HeldOutChoice(**value)


def _parse_positive_number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"{key}: expected a number above 0 in the unit of the primary metric, got {value!r}.")
    return float(value)


def _parse_optional_number(key: str, value: Any) -> float | None:
    return None if value is None else _parse_positive_number(key, value)


def _parse_bool(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key}: expected true or false, got {value!r}.")
    return value


def _parse_settings(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key}: expected dotted keys and their values, got {value!r}.")
    for name in value:
        if name.removesuffix("+") in ELSEWHERE:
            raise ValueError(f"{key}: {name} follows from {ELSEWHERE[name.removesuffix('+')]}. Remove it here.")
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": validate_folder_name,
    "configs": _parse_files,
    "conditions": _parse_conditions,
    "baseline": validate_folder_name,
    "families": _parse_families,
    "seeds": _parse_seeds,
    "steps": _parse_steps,
    "budget": _parse_budget,
    "primary": _parse_primary,
    "summary": _parse_summary,
    "held_out": _parse_held_out,
    "effect": _parse_positive_number,
    "deviation": _parse_optional_number,
    "exploratory": _parse_bool,
    "settings": _parse_settings,
}


ALPHA = 0.05
"""Chance that a campaign finds a difference where there is none."""

LATER: dict[str, Any] = {
    "steps": None,
    "budget": None,
    "summary": "end",
    "held_out": {"questions": "shared", "draws": "shared"},
}
"""Keys that earlier declarations lacked, or could not leave out: at these values they are not written, so that hashes
of declarations stay as they were."""

FOLDER_OF_CONDITION = re.compile(r"(?<![^/])(configs/conditions/)[^/]+/(?=[^/]+$)")


@dataclasses.dataclass(frozen=True)
class CampaignDeclaration:
    """Everything that is decided before the first run of a campaign.

    Args:
        name: Name of the campaign and of its folder.
        configs: Configuration files common to all runs.
        conditions: Overlay files of each condition, in the order they are applied.
        baseline: Condition compared with all others if no families are given; the plan counts its samples.
        families: Groups of comparisons, by the question each answers.
        seeds: Seeds, for each of which every condition runs once; the runs of a seed are pairs.
        steps: Optimizer steps of every run; None if a budget ends them.
        primary: Held-out metric that is compared.
        effect: Smallest difference of the primary metric that would matter, in its unit.
        deviation: Expected standard deviation of the paired differences of that metric, if known.
        exploratory: Whether the campaign may have too few seeds to reach a conclusion.
        settings: Settings applied on top of all files, by dotted keys.
        budget: Tokens after which every run ends, in place of ``steps``.
        summary: What of the primary metric is compared: its value at the end of the run, the area under its curve as
            the mean height, or how soon it reaches a level.
        held_out: What seeds share of the held-out evaluation.

    """

    name: str
    configs: tuple[str, ...]
    conditions: dict[str, tuple[str, ...]]
    baseline: str
    seeds: tuple[int, ...]
    steps: int | None
    primary: str
    effect: float
    deviation: float | None = None
    exploratory: bool = False
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    families: dict[str, ComparisonFamily] = dataclasses.field(default_factory=dict)
    budget: DeclaredBudget | None = None
    summary: Summary = "end"
    held_out: HeldOutChoice = HeldOutChoice()

    @property
    def end(self) -> int:
        """Where every run ends: its number of steps, or the tokens of its budget."""
        if self.budget:
            return self.budget.tokens
        assert self.steps is not None
        return self.steps

    @property
    def end_label(self) -> str:
        """Where every run ends, in words that follow "after"."""
        return f"{self.end:,} {self.budget.unit}" if self.budget else f"step {self.end}"

    @property
    def summary_label(self) -> str:
        """What is compared in words, in which ``{}`` stands for the primary metric."""
        if isinstance(self.summary, ReachedLevel):
            return f"the share of the run left once {{}} has reached {self.summary.level:g}"
        return {"end": "{}", "area": "the area under {}"}[self.summary]

    @property
    def span_label(self) -> str:
        """Part of the run that what is compared depends on, in words."""
        return f"after {self.end_label}" if self.summary == "end" else f"up to {self.end_label}"

    @property
    def length_label(self) -> str:
        """Length of every run in words."""
        return f"{self.end:,} {self.budget.unit} a run" if self.budget else f"{self.end} steps"

    @property
    def axis_label(self) -> str:
        """Unit in which the course of a run is measured, in words."""
        return self.budget.unit if self.budget else "optimizer step"

    @property
    def comparison_families(self) -> dict[str, ComparisonFamily]:
        """Return the families of comparisons; the report corrects them all together."""
        others = tuple(name for name in self.conditions if name != self.baseline)
        return self.families or ({"all": ComparisonFamily(self.baseline, others)} if others else {})

    @property
    def sha256(self) -> str:
        """Hash of the declaration's content, whatever the layout of its file."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON restores it; a shipped condition becomes its name, wherever its file lies."""
        conditions = {name: [drop_condition_folder(file) for file in files] for name, files in self.conditions.items()}
        plain = {**dataclasses.asdict(self), "conditions": conditions}
        absent = [name for name, neutral in LATER.items() if plain[name] == neutral]
        return json.loads(json.dumps({name: value for name, value in plain.items() if name not in absent}))

    @classmethod
    def from_json(cls, content: Any) -> "CampaignDeclaration":
        """Return the declaration of a campaign file, or what :meth:`to_json` returned; its files need not exist.

        Raises:
            ValueError: names the key, the value, and the repair.

        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        if not isinstance(content, dict):
            raise ValueError(f"a campaign is a mapping with the keys {', '.join(fields)}.")
        for key in content:
            if key not in fields:
                close = difflib.get_close_matches(str(key), fields, n=1)
                meant = f" Did you mean `{close[0]}`?" if close else ""
                raise ValueError(f"{key}: no such key.{meant} There are {', '.join(fields)}.")
        if content.get("steps") is not None and content.get("budget") is not None:
            raise ValueError("budget: a run ends after so many steps or so many tokens. Keep `steps` or `budget`.")
        ends = {"steps": None} if content.get("budget") is not None else {}
        content = {name: value for name, value in content.items() if name not in ends}
        needed = [name for name, field in fields.items() if field.default is field.default_factory and name not in ends]
        if missing := [name for name in needed if name not in content]:
            raise ValueError(
                f"{', '.join(missing)}: missing from the declaration. They must be fixed before the first run."
            )
        return cls(**ends, **parse_declared_values(content))


def drop_condition_folder(file: str) -> str:
    """Drop the folder of a shipped condition, so that moving its file does not change a declaration.

    Example:
        >>> drop_condition_folder("configs/conditions/sepa_paper/c1_grpo.yaml")
        'configs/conditions/c1_grpo.yaml'
        >>> drop_condition_folder("my/c1_grpo.yaml")
        'my/c1_grpo.yaml'

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
    """Check the content of a campaign file, and that the files exist which it names."""
    declaration = CampaignDeclaration.from_json(content)
    named = {f"conditions.{name}": files for name, files in declaration.conditions.items()}
    for key, files in {"configs": declaration.configs, **named}.items():
        for file in files:
            if not is_existing_file(Path(find_config_file(file))):
                raise ValueError(f"{key}: there is no file {shorten_name(file)}; paths are relative to {Path.cwd()}.")
    return declaration
