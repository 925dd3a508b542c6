"""A report card: all findings about one condition on one test policy."""

import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import warn_once
from rlcredit.campaign.record_schema import NUMBER_OR_NULL
from rlcredit.cards.budget import BUDGETS, CardBudget
from rlcredit.cards.card_batch import CardBatch, CreditedBatch
from rlcredit.cards.card_options import USUAL
from rlcredit.cards.credit_effects import list_stack_warnings, measure_credit_cost, measure_credit_effects
from rlcredit.cards.finding import Finding
from rlcredit.cards.gradient_change import measure_gradient_change
from rlcredit.cards.operator_text import TEXTS, OperatorText, describe_own_operators
from rlcredit.cards.stack_properties import StackProperty, check_stack_properties
from rlcredit.cards.training_outcome import TrainingOutcome, describe_equivalence, format_paired_difference
from rlcredit.cards.true_credit import measure_credit_agreement
from rlcredit.cli.explain import render_call
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.json_shapes import Shape, read_stored_json
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.credit.operator import CreditOperator
from rlcredit.oracle import TrueCredit
from rlcredit.pages.notebook_views import InlinePage

SECTIONS = {
    "batch": "What it does to a batch",
    "gradient": "The gradient",
    "truth": "True credit",
    "learning": "Learning",
    "cost": "Cost",
}
"""Titles, in the order of the page."""

ROUNDING = 1e-6
"""Share of credit that is moved by nothing but the rounding of float32."""

NUMBERS = ("estimate", "low", "high", "baseline")
"""Keys of the numbers of a finding; null where there is none."""

POINT = 4
"""Numbers of a point of a learning curve: step, mean, and the two ends of its interval."""

CARD: Shape = {
    **dict.fromkeys(("name", "organism", "baseline", "budget", "stack", "against", "commit"), str),
    **{key: [str] for key in ("origins", "grounds", "beside", "warnings")},
    "properties": [{"name": str, "holds": (bool, type(None)), "sentence": str}],
    "sections": {
        str: [{**dict.fromkeys(("name", "title", "unit", "sentence"), str), **dict.fromkeys(NUMBERS, NUMBER_OR_NULL)}]
    },
    **dict.fromkeys(("verdict", "sentence", "page"), str),
    "operators?": [
        {
            **dict.fromkeys(("name", "summary", "source"), str),
            "formulas": [str],
            "prose": [str],
            "arguments": [dict.fromkeys(TEXTS, str)],
        }
    ],
    "curves?": {str: [[float]]},
    "policy?": str,
}
REPAIR = "Remove it; the same command makes it anew."

ROLLOUT = "rollout"
"""Budget of a card on a batch from a file: nothing is sampled and nothing trained."""

NONE, ITSELF, UNTRAINED = "no difference", "the baseline itself", "not trained"


@dataclass
class Card:
    """All that has been measured about a condition.

    Attributes:
        name: Name of the condition.
        organism: Test policy on which the condition was measured.
        baseline: Condition with which it is compared.
        budget: Name of the budget.
        origins: How the condition, its test policy and its baseline were named, in this order.
        stack: Operators of the condition, written as calls.
        against: Operators of the baseline, written as calls.
        commit: Git commit of the code that made the card.
        grounds: Identifiers of its test policy and its baseline.
        beside: Settings other than the stack in which it differs from the baseline.
        properties: Properties of the stack.
        warnings: Warnings about operators that do nothing, and about a stack that gives no credit.
        sections: Findings, by section.
        verdict: Conclusion in a word or two.
        sentence: Conclusion in one sentence.
        page: Heat-map of some completions, a page of its own.
        operators: What its operators are, but for those of the baseline.
        curves: Held-out pass@1 over the runs, of the condition and of the baseline: step, mean, and the two ends of its
            interval; empty where nothing was trained.
        policy: Options that name tokenizer and policy of a batch from a file; empty on a test policy.

    """

    name: str
    organism: str
    baseline: str
    budget: str
    origins: Sequence[str]
    stack: str
    against: str
    commit: str
    grounds: Sequence[str]
    beside: Sequence[str] = ()
    properties: Sequence[StackProperty] = ()
    warnings: Sequence[str] = ()
    sections: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    verdict: str = ""
    sentence: str = ""
    page: str = ""
    operators: Sequence[OperatorText] = ()
    curves: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    policy: str = ""

    def command(self, *others: "Card") -> str:
        """Return the command that makes this card, and those of the condition on other test policies."""
        named, file, base = self.origins
        if self.is_of_rollout:
            words = ("rlcredit", "card", named, "--rollout", file, "--baseline", base)
            return f"{shlex.join(words)} {self.policy}".rstrip()
        places = (place for _, place, _ in (each.origins for each in (self, *others)))
        words = ("rlcredit", "card", named, "--budget", self.budget, "--organism", *places, "--baseline", base)
        return shlex.join(words)

    @property
    def is_of_rollout(self) -> bool:
        """Whether the card is one of a batch from a file."""
        return self.budget == ROLLOUT

    @property
    def page_stem(self) -> str:
        """Name of the folder with the card's page."""
        return f"{self.folder_stem}-{f'on-{self.organism}' if self.is_of_rollout else self.budget}"

    @property
    def has_shipped_names(self) -> bool:
        """Whether test policy and baseline were given by name, as shipped ones are."""
        return tuple(self.origins[1:]) == (self.organism, self.baseline)

    @property
    def comparison_key(self) -> tuple[str, str]:
        """Baseline and budget; cards with the same key can be compared with each other."""
        return self.grounds[1], self.budget

    @property
    def folder_stem(self) -> str:
        """Name of the card's folder among those of its test policy and budget."""
        return name_card_folder(self.name, self.baseline)

    def _repr_html_(self) -> str:
        """Return the card's page in a frame, for a notebook."""
        from rlcredit.cards.card_view import write_card_page  # noqa: PLC0415  (it imports this module)

        with tempfile.TemporaryDirectory() as folder:
            page = write_card_page([self], Path(folder)).read_text(encoding="utf-8")
        return InlinePage(page)._repr_html_()

    def finding(self, name: str) -> Finding | None:
        """Return the finding with a name; None if there is none."""
        return next((one for findings in self.sections.values() for one in findings if one.name == name), None)

    def write(self, path: Path | str) -> None:
        """Write the card as JSON."""
        plain = {
            **vars(self),
            "properties": [one.to_json() for one in self.properties],
            "operators": [one.to_json() for one in self.operators],
            "sections": {name: [one.to_json() for one in findings] for name, findings in self.sections.items()},
        }
        write_atomically(Path(path), json.dumps(plain, indent=1, ensure_ascii=False))

    @classmethod
    def read_all(cls, folder: Path | str) -> list["Card"]:
        """Return all cards in a folder; files that this version cannot read are named and left out."""
        cards = list[Card]()
        for path in sorted(Path(folder).glob("*/*/*/card.json")):
            try:
                cards.append(cls.read(path))
            except ValueError as error:
                warn_once(f"{error} It is left out.")
        return cards

    @classmethod
    def read(cls, path: Path | str) -> "Card":
        """Return the card that :meth:`write` has written.

        Raises:
            ValueError: it is no card; names the file, the field and the repair.

        """
        path = Path(path)
        plain: dict[str, Any] = read_stored_json(path, CARD, REPAIR)
        if problem := _find_card_contradiction(plain):
            raise ValueError(f"{shorten_name(path)} is damaged: {problem}. {REPAIR}")
        plain["properties"] = [StackProperty(**one) for one in plain["properties"]]
        plain["operators"] = [OperatorText(**one) for one in plain.get("operators", [])]
        plain["sections"] = {
            name: [Finding.from_json(one) for one in findings] for name, findings in plain["sections"].items()
        }
        return cls(**plain)


def _find_card_contradiction(plain: Mapping[str, Any]) -> str | None:
    """Return what is impossible in a card whose JSON has the right shape."""
    if extra := sorted(plain.keys() - {key.removesuffix("?") for key in CARD}):
        return f"{extra[0]} is no key of a card"
    if plain["budget"] not in (*BUDGETS, ROLLOUT) or (len(plain["origins"]), len(plain["grounds"])) != (3, 2):
        return "its budget, origins or grounds are not those of a card"
    try:
        for key in ("name", "organism", "baseline"):
            validate_folder_name(key, plain[key])
    except ValueError as error:
        return str(error).rstrip(".")
    numbers = (
        (f"sections.{name}[{place}].{key}", value)
        for name, findings in plain["sections"].items()
        for place, one in enumerate(findings)
        for key, value in one.items()
        if key in NUMBERS
    )
    points = (
        (f"curves.{name}[{place}]", value)
        for name, curve in plain.get("curves", {}).items()
        for place, point in enumerate(curve)
        for value in (point if len(point) == POINT else [inf])
    )
    return next((f"{place} is {value}" for place, value in (*numbers, *points) if not abs(value or 0) < inf), None)


def name_card_folder(name: str, baseline: str) -> str:
    """Return the folder name of a condition; comparisons with another baseline get a folder of their own."""
    return name if baseline in (USUAL, name) else f"{name}-against-{baseline}"


def measure_card_sections(
    batch: CardBatch, base: CardBatch, truth: TrueCredit, budget: CardBudget
) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings that need one batch only, section by section."""
    yield "batch", list(measure_credit_effects(batch, base))
    yield "gradient", list(measure_gradient_change(batch, base, budget.batch))
    yield "truth", list(measure_credit_agreement(batch, base, truth))
    yield "cost", list(measure_credit_cost(batch, base))


def format_operator_stack(stack: Sequence[CreditOperator]) -> str:
    """Return the operators of a stack, written as calls."""
    return " > ".join(render_call(operator) for operator in stack) or "no operators: REINFORCE"


def describe_card_stack(batch: CreditedBatch, base: CreditedBatch, counted: str = "") -> dict[str, Any]:
    """Return what the operators of a stack are, its properties and warnings, and its heat-map.

    Args:
        batch: Batch with the stack's credit.
        base: Same batch with the baseline's credit.
        counted: How rewards count, in words; empty if they are one for right and zero for wrong.

    """
    return {
        "operators": describe_own_operators(batch.stack, base.stack),
        "properties": [*check_stack_properties(batch), *describe_rewards_counted(counted)],
        "warnings": list_stack_warnings(batch),
        "page": batch.page,
    }


def describe_rewards_counted(counted: str) -> Iterator[StackProperty]:
    """Yield how rewards count, in words; nothing where they are one for right and zero for wrong."""
    if counted:
        yield StackProperty("reward functions", None, counted)


def conclude_card(card: Card, learnt: TrainingOutcome) -> tuple[str, str]:
    """Return the conclusion and its sentence.

    Where the stack moves no credit and every answer of every run is that of the baseline, there is no difference; else
    the verdict is that of the paired runs.
    """
    moved = card.finding("moved")
    if learnt.has_equal_answers and moved and moved.estimate < ROUNDING:
        credit = f"{card.name} gives every token the baseline's credit, up to a common factor"
        return NONE, f"{credit}, and every run answers as the baseline's does."
    verdict, compared = learnt.comparison.verdict, learnt.comparison
    assert compared.test is not None
    runs = f"{len(learnt.runs)} paired runs of {learnt.steps} steps"
    within = f"; {describe_equivalence(compared.test)}" if verdict.startswith("equivalent") else ""
    ends = format_paired_difference(compared.test, card.baseline)
    return verdict, f"After {runs} {card.name} ends {ends}{within}."
