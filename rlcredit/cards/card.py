"""A report card: all findings about one condition on one test policy, as a record that is stored as JSON."""

import itertools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import warn_once
from rlcredit.cards.card_options import USUAL_BASELINE
from rlcredit.cards.finding import Finding, FiniteNumber
from rlcredit.cards.operator_text import OperatorText
from rlcredit.cards.stack_properties import StackProperty
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.stored_records import make_record_adapter, read_stored_record

CARD_REPAIR = "Remove it; the same command makes it anew."

ROLLOUT_BUDGET = "rollout"
"""Budget of a card on a batch from a file: nothing is sampled and nothing trained."""

NO_DIFFERENCE = "no difference"
BASELINE_VERDICT = "the baseline itself"
UNTRAINED_VERDICT = "not trained"
UNTRAINED_SENTENCE = "No run says what is learnt from it."


def _check_folder_name(name: str) -> str:
    try:
        return validate_folder_name("", name)
    except ValueError as error:
        raise ValueError(str(error).removeprefix(": ")) from None  # the reader of records names the key


FolderName = Annotated[str, AfterValidator(_check_folder_name)]
CurvePoint = tuple[FiniteNumber, FiniteNumber, FiniteNumber, FiniteNumber]
"""Step, mean, and the two ends of its interval."""


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

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    name: FolderName
    organism: FolderName
    baseline: FolderName
    budget: Literal["batch", "quick", "standard", "full", "rollout"]
    origins: tuple[str, str, str]
    stack: str
    against: str
    commit: str
    grounds: tuple[str, str]
    beside: Sequence[str] = ()
    properties: Sequence[StackProperty] = ()
    warnings: Sequence[str] = ()
    sections: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    verdict: str = ""
    sentence: str = ""
    page: str = ""
    operators: Sequence[OperatorText] = ()
    curves: Mapping[str, Sequence[CurvePoint]] = field(default_factory=dict)
    policy: str = ""

    def command(self, *others: "Card") -> str:
        """Return the command that makes this card, and those of the condition on other test policies."""
        condition, source, baseline = self.origins
        if self.is_of_rollout:
            words = ("rlcredit", "card", condition, "--rollout", source, "--baseline", baseline)
            return f"{shlex.join(words)} {self.policy}".rstrip()
        sources = [card.origins[1] for card in (self, *others)]
        words = ("rlcredit", "card", condition, "--budget", self.budget, "--organism", *sources, "--baseline", baseline)
        return shlex.join(words)

    @property
    def is_of_rollout(self) -> bool:
        """Whether the card is one of a batch from a file."""
        return self.budget == ROLLOUT_BUDGET

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

    def finding(self, name: str) -> Finding | None:
        """Return the finding with a name; None if there is none."""
        findings = itertools.chain.from_iterable(self.sections.values())
        return next((finding for finding in findings if finding.name == name), None)

    def write(self, path: Path | str) -> None:
        """Write the card as JSON."""
        text = make_record_adapter(Card).dump_json(self, indent=1, warnings=False)  # a list may stand for a tuple
        write_atomically(Path(path), text.decode())

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
        return read_stored_record(Path(path), Card, CARD_REPAIR)


def name_card_folder(name: str, baseline: str) -> str:
    """Return the folder name of a condition; comparisons with another baseline get a folder of their own."""
    return name if baseline in (USUAL_BASELINE, name) else f"{name}-against-{baseline}"
