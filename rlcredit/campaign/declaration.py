"""The declaration of a campaign: its keys, the values they accept, and the errors for all others."""

import dataclasses
import functools
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic.dataclasses
from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from rlcredit.base.budget_kinds import BUDGET_KINDS, list_budget_marks
from rlcredit.base.files import is_existing_file
from rlcredit.base.messages import suggest_name
from rlcredit.config import strict_yaml
from rlcredit.config.allowed_values import SEED_COUNT, validate_folder_name
from rlcredit.config.arguments import CONFIG_KEYS
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.paths import find_config_file, find_declared_file
from rlcredit.config.reader import locate_in_file
from rlcredit.config.strict_yaml import shorten_name

HELD_OUT_METRICS = ("val/pass_at_1", "val/pass_at_k")
"""Shares of held-out questions, of which more is better; a metric of training batches depends on their prompts."""

ALPHA = 0.05
"""Chance that a campaign finds a difference where there is none."""

_RESERVED_NAMES = ("report", "ledger.json", "lock", "settings.yaml", "timings.json")
"""Files and folders of a campaign that no condition may be named like."""

_SETTING_SOURCES = {
    "trainer.max_steps": "`steps`",
    "seed_everything": "`seeds`",
    "condition": "the names under `conditions`",
    "trainer.default_root_dir": "`name`, condition and seed",
    "checkpoint.dirpath": "`name`, condition and seed",
    "threads": "the option --threads",
    "ckpt_path": "the runs themselves: an interrupted one is continued",
}
"""Keys of a declaration by the settings that a campaign makes from them."""

_EXPECTED = "expected"
"""Type of the faults that name the value that was expected; what precedes the message is their key."""

_STEPS_WORDS = "a number of optimizer steps, at least 1"
_BUDGET_WORDS = f"{{{' | '.join(BUDGET_KINDS)}: NUMBER, evaluations: NUMBER}} with one of these counts"

_NEUTRAL_VALUES: dict[str, Any] = {
    "steps": None,
    "budget": None,
    "summary": "end",
    "held_out": {"questions": "shared", "draws": "shared"},
    "rates_from": {},
}
"""Values at which a key is not written, so that the hash of a declaration does not depend on it."""

_CONDITION_FOLDER = re.compile(r"(?<![^/])(configs/conditions/)[^/]+/(?=[^/]+$)")


def _expect_value(words: str, repair: str = "") -> WrapValidator:
    """Return the validator that says what a value should be, unless it is said of a value inside."""

    def validate_or_explain(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            if _find_worded_fault(error):
                raise
            message = f"expected {words}, got {value!r}.{repair}"
            raise PydanticCustomError(_EXPECTED, "{message}", {"message": message}) from None

    return WrapValidator(validate_or_explain)


def _find_worded_fault(error: ValidationError) -> str | None:
    """Return the message of the first fault that has words of ours."""
    for fault in error.errors():
        if fault["type"] == _EXPECTED:
            return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        if fault["type"] == "value_error":
            return str(fault.get("ctx", {})["error"])
    return None


def _name_folder(key: str) -> PlainValidator:
    return PlainValidator(functools.partial(validate_folder_name, key))


def _drop_nulls(value: Any) -> Any:
    return {key: part for key, part in value.items() if part is not None} if isinstance(value, dict) else value


Sharing = Literal["shared", "by_seed"]
HeldOutMetric = Literal["val/pass_at_1", "val/pass_at_k"]
_ConditionName = Annotated[str, _name_folder("conditions")]
_Seed = Annotated[StrictInt, Field(ge=0, lt=SEED_COUNT)]
_Count = Annotated[StrictInt, Field(ge=1)]
_Tokens = Annotated[_Count | None, _expect_value("a whole number, at least 1")]
_Effect = Annotated[float, Field(gt=0, le=sys.float_info.max, strict=True)]
_EFFECT_WORDS = _expect_value("a number above 0 in the unit of the primary metric")
_Files = Annotated[
    tuple[StrictStr, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    _expect_value("a file or a list of files"),
]


@pydantic.dataclasses.dataclass(frozen=True, config={"extra": "forbid"})
class ComparisonFamily:
    """Comparisons that answer one question; p-values are adjusted over the families of a campaign together.

    Args:
        baseline: Condition with which the others are compared.
        conditions: Conditions compared with the baseline.

    """

    baseline: StrictStr
    conditions: Annotated[
        tuple[StrictStr, ...], Field(min_length=1), _expect_value("names of conditions, with at least one to compare")
    ]


@pydantic.dataclasses.dataclass(frozen=True, config={"extra": "forbid"})
class DeclaredBudget:
    """Tokens after which every run ends, in place of a number of steps.

    Args:
        decoded_tokens: Tokens decoded for training; one of the three is given.
        backward_tokens: Tokens of updates.
        evaluations: Number of evaluations after the first step, at equal shares of the budget; None for a 16th, an
            eighth, a quarter, half and all of it.
        rollout_tokens: Tokens decoded and read for training.

    """

    decoded_tokens: _Tokens = None
    backward_tokens: _Tokens = None
    evaluations: Annotated[_Count | None, _expect_value("a whole number, at least 1")] = None
    rollout_tokens: _Tokens = None

    def __post_init__(self) -> None:
        """Refuse a budget that is not in one count."""
        if len(self._declared_kinds) != 1:
            raise PydanticCustomError("one_count", "One count is the budget.")

    @property
    def key(self) -> str:
        """Key under which the budget is declared."""
        return self._declared_kinds[0]

    @property
    def _declared_kinds(self) -> list[str]:
        return [kind for kind in BUDGET_KINDS if getattr(self, kind) is not None]

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
        return [0, *list_budget_marks(self.tokens, self.evaluations)]


@pydantic.dataclasses.dataclass(frozen=True, config={"extra": "forbid"})
class ReachedLevel:
    """Summary of a run: how soon its held-out curve first reaches a level, between evaluations on a straight line.

    It is the share of the run that is left then, so that more is better, and zero where the level is never reached. A
    run is as long as its steps, or as its budget of tokens.

    Args:
        level: Value of the primary metric that must be reached, between 0 and 1.

    """

    level: Annotated[_Effect, Field(lt=1)]


@pydantic.dataclasses.dataclass(frozen=True, config={"extra": "forbid"})
class HeldOutChoice:
    """What seeds share of the held-out evaluation; the runs of one seed share all of it.

    Args:
        questions: ``shared`` by all seeds, or ``by_seed``: generated anew for each, as are the training questions.
        draws: Sampling noise of held-out answers: the same for all seeds as ``model.validation_seed`` says
            (``shared``), or ``by_seed``.

    """

    questions: Sharing = "shared"
    draws: Sharing = "shared"


Summary = Literal["end", "area", "steadiness"] | ReachedLevel
_Settings = Annotated[dict[StrictStr, Any], _expect_value("dotted keys and their values")]
_Family = Annotated[ComparisonFamily, _expect_value("{baseline: NAME, conditions: [NAME, ...]}")]
_Families = Annotated[dict[str, _Family], _expect_value("a mapping from names of families to their comparisons")]
_Budget = Annotated[
    DeclaredBudget | None,
    BeforeValidator(_drop_nulls),
    _expect_value(_BUDGET_WORDS, " Only exact counts can be a budget."),
]


@pydantic.dataclasses.dataclass(frozen=True)
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
            the mean height, one less its largest fall below a score that the run had before, or how soon it reaches a
            level.
        held_out: What seeds share of the held-out evaluation.
        rates_from: Campaign in which the learning rate of a condition was chosen, by condition. A report marks the
            conditions that are missing, whose rate nobody tuned; it marks none where nothing is declared.
        folder: Folder of the campaign's file, beside which its conditions may lie; no part of what is declared.

    """

    name: Annotated[str, _name_folder("name")]
    configs: _Files
    conditions: Annotated[
        dict[_ConditionName, _Files],
        Field(min_length=1),
        _expect_value("a mapping from names of conditions to their files"),
    ]
    baseline: Annotated[str, _name_folder("baseline")]
    seeds: Annotated[
        tuple[_Seed, ...], Field(min_length=1), _expect_value(f"a list of numbers from 0 to {SEED_COUNT - 1}")
    ]
    steps: Annotated[_Count | None, _expect_value(_STEPS_WORDS)]
    primary: Annotated[HeldOutMetric, _expect_value(f"a held-out metric, one of {', '.join(HELD_OUT_METRICS)}")]
    effect: Annotated[_Effect, _EFFECT_WORDS]
    deviation: Annotated[_Effect | None, _EFFECT_WORDS] = None
    exploratory: Annotated[StrictBool, _expect_value("true or false")] = False
    settings: _Settings = dataclasses.field(default_factory=dict)
    families: _Families = dataclasses.field(default_factory=dict)
    budget: _Budget = None
    summary: Annotated[
        Summary, _expect_value("end, area, steadiness, or {level: SHARE} with a share between 0 and 1")
    ] = "end"
    held_out: Annotated[HeldOutChoice, _expect_value("{questions: by_seed, draws: by_seed}, or shared")] = (
        HeldOutChoice()
    )
    rates_from: Annotated[dict[StrictStr, StrictStr], _expect_value("a mapping from conditions to campaigns")] = (
        dataclasses.field(default_factory=dict)
    )
    folder: Path | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse names and values that do not go together."""
        if self.budget is None and self.steps is None:
            raise ValueError(f"steps: expected {_STEPS_WORDS}, got None.")
        if self.budget and (self.budget.evaluations or 1) > self.budget.tokens:
            raise ValueError(f"budget.evaluations: expected at most one per token, got {self.budget.evaluations}.")
        if self.effect >= 1:
            points = f"{self.effect:g} is {100 * self.effect:g} percentage points"
            raise ValueError(f"effect: {points}. Say {self.effect / 100:g} for {self.effect:g} of them.")
        for name in self.conditions:
            if name in _RESERVED_NAMES:
                repair = "Give the condition another name."
                raise ValueError(f"conditions: {name} is the name of a file of the campaign itself. {repair}")
        for name in self.families:
            if not name.isprintable() or set(name) & set("<>|[]#"):
                repair = "since it becomes a heading of the report"
                raise ValueError(f"families: {name!r} must be one line without < > | [ ] #, {repair}.")
        for seed, count in Counter(self.seeds).items():
            if count > 1:
                raise ValueError(f"seeds: {seed} occurs twice, and one run must not count twice. Remove one.")
        for setting in self.settings:
            if source := _SETTING_SOURCES.get(setting.removesuffix("+")):
                raise ValueError(f"settings: {setting} follows from {source}. Remove it here.")
        members: dict[str, tuple[str, ...]] = {"baseline": (self.baseline,), "rates_from": tuple(self.rates_from)}
        for name, family in self.families.items():
            members[f"families.{name}"] = (family.baseline, *family.conditions)
            if len({family.baseline, *family.conditions}) <= len(family.conditions):
                raise ValueError(f"families.{name}: a condition occurs twice. Remove one.")
        for key, names in members.items():
            for name in names:
                if name not in self.conditions:
                    raise ValueError(f"{key}: there is no condition {name!r}. There are {', '.join(self.conditions)}.")

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
        labels = {"end": "{}", "area": "the area under {}", "steadiness": "one less the largest fall of {}"}
        return labels[self.summary]

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
        """Return the families of comparisons by the question they answer, empty where none is declared.

        The report corrects them all together.
        """
        names = tuple(name for name in self.conditions if name != self.baseline)
        return self.families or ({"": ComparisonFamily(self.baseline, names)} if names else {})

    def label_condition(self, name: str) -> str:
        """Return the name of a condition, which says where nobody tuned its learning rate."""
        return f"{name} (rate not tuned)" if self.rates_from and name not in self.rates_from else name

    @property
    def sha256(self) -> str:
        """Hash of the declaration's content, whatever the layout of its file."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON restores it; a shipped condition becomes its name, wherever its file lies."""
        conditions = {name: [drop_condition_folder(file) for file in files] for name, files in self.conditions.items()}
        plain = {**dataclasses.asdict(self), "conditions": conditions}
        plain.pop("folder")
        if self.budget is not None and self.budget.rollout_tokens is None:
            plain["budget"].pop("rollout_tokens")  # the hash of older declarations stays
        neutral = {name for name, value in _NEUTRAL_VALUES.items() if plain[name] == value}
        return json.loads(json.dumps({name: value for name, value in plain.items() if name not in neutral}))

    @classmethod
    def from_json(cls, content: Any) -> "CampaignDeclaration":
        """Return the declaration of a campaign file, or what :meth:`to_json` returned; its files need not exist.

        Raises:
            ValueError: names the key, the value, and the repair.

        """
        fields = {field.name: field for field in dataclasses.fields(cls) if field.compare}
        if not isinstance(content, dict):
            raise ValueError(f"a campaign is a mapping with the keys {', '.join(fields)}.")
        for key in content:
            if key in CONFIG_KEYS and "conditions" in content:
                raise ValueError(f"{key}: a key of a configuration. Write what it says under `settings`.")
            if key in CONFIG_KEYS:
                raise ValueError(f"{key}: a key of a configuration, which this file is. Name a campaign in its place.")
            if key not in fields:
                raise ValueError(f"{key}: no such key.{suggest_name(str(key), fields)} There are {', '.join(fields)}.")
        if content.get("budget") is not None:
            if content.get("steps") is not None:
                raise ValueError("budget: a run ends after so many steps or so many tokens. Keep `steps` or `budget`.")
            content = {**content, "steps": None}
        required_names = [name for name, field in fields.items() if field.default is field.default_factory]
        if missing := [name for name in required_names if name not in content]:
            pronoun = "it" if len(missing) == 1 else "them"
            raise ValueError(f"{', '.join(missing)}: missing from the declaration. Fix {pronoun} before the first run.")
        try:
            return cls(**content)
        except ValidationError as error:
            raise ValueError(_find_worded_fault(error)) from None


def drop_condition_folder(file: str) -> str:
    """Drop the folder of a shipped condition, so that moving its file does not change a declaration.

    Example:
        >>> drop_condition_folder("configs/conditions/sepa_paper/c1_grpo.yaml")
        'configs/conditions/c1_grpo.yaml'
        >>> drop_condition_folder("my/c1_grpo.yaml")
        'my/c1_grpo.yaml'

    """
    return _CONDITION_FOLDER.sub(r"\1", file)


def read_declaration(path: Path) -> CampaignDeclaration:
    """Read a campaign file.

    Raises:
        ValueError: with what is wrong in it and the repair.

    """
    text = strict_yaml.read_text_file(path)
    content = strict_yaml.parse_yaml(text, str(path))
    try:
        refuse_passwords(content)
        return parse_declaration(content, path.parent)
    except ValueError as error:
        raise ValueError(locate_in_file(str(error), text, str(path))) from None


def parse_declaration(content: Any, folder: Path | None = None) -> CampaignDeclaration:
    """Check the content of a campaign file, and that the files exist which it names."""
    declaration = dataclasses.replace(CampaignDeclaration.from_json(content), folder=folder)
    condition_files = {f"conditions.{name}": files for name, files in declaration.conditions.items()}
    for key, files in {"configs": declaration.configs, **condition_files}.items():
        for file in files:
            if not is_existing_file(Path(find_config_file(find_declared_file(file, folder)))):
                raise ValueError(f"{key}: there is no file {shorten_name(file)}; paths are relative to {Path.cwd()}.")
    return declaration
