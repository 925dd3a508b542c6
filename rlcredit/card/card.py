"""A card: all that has been found out about one condition on one organism."""

import contextlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlcredit.card.batch import Batch
from rlcredit.card.budget import Budget
from rlcredit.card.cost import costs
from rlcredit.card.effects import effects, warnings
from rlcredit.card.finding import Finding
from rlcredit.card.learning import Learnt, inside, points
from rlcredit.card.properties import Property, properties
from rlcredit.card.truth import agreed
from rlcredit.card.turn import turned
from rlcredit.files import write_atomically
from rlcredit.oracle import TrueCredit

SECTIONS = {
    "batch": "What it does to a batch",
    "gradient": "The gradient",
    "truth": "The truth",
    "learning": "Learning",
    "cost": "Cost",
}
"""Titles, in the order of the page."""

ROUNDING = 1e-6
"""Share of credit that is moved by nothing but the rounding of float32."""

USUAL = "GRPO"
"""Baseline unless another is named."""

NONE, ITSELF, UNTRAINED = "no difference", "the baseline itself", "not trained"


@dataclass
class Card:
    """What is known of a condition.

    Attributes:
        name: of the condition.
        organism: on which it was measured.
        baseline: with which it is compared.
        budget: name of it.
        origins: how it, its organism and its baseline were named, in this order.
        stack: its operators, written as calls.
        against: those of the baseline.
        commit: of the code that made the card.
        grounds: what identifies its organism, and its baseline.
        beside: settings in which it differs from the baseline besides its stack.
        properties: what it is.
        warnings: what is known of operators that do nothing, and of a stack that gives no credit.
        sections: findings, by section.
        verdict: in a word or two.
        sentence: it in one sentence.
        page: a heat-map of some completions, a page of its own.

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
    properties: Sequence[Property] = ()
    warnings: Sequence[str] = ()
    sections: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    verdict: str = ""
    sentence: str = ""
    page: str = ""

    def command(self, *others: "Card") -> str:
        """Return the command that makes it, and those of its condition on other organisms, as all were named."""
        named, _, base = self.origins
        places = (place for _, place, _ in (each.origins for each in (self, *others)))
        said = ("rlcredit", "card", named, "--budget", self.budget, "--organism", *places, "--baseline", base)
        return shlex.join(said)

    @property
    def common(self) -> bool:
        """Whether organism and baseline were called by their names, as those are that are shipped."""
        return tuple(self.origins[1:]) == (self.organism, self.baseline)

    @property
    def compared_with(self) -> tuple[str, str]:
        """With what, and at which budget: cards that share it can stand beside each other."""
        return self.grounds[1], self.budget

    @property
    def place(self) -> str:
        """Name of its folder among those of its organism and budget."""
        return folder_of(self.name, self.baseline)

    def finding(self, name: str) -> Finding | None:
        """Return the finding of a name; None where nothing was found."""
        return next((one for found in self.sections.values() for one in found if one.name == name), None)

    def write(self, path: Path) -> None:
        """Keep it as JSON."""
        plain = {
            **vars(self),
            "properties": [one.plain() for one in self.properties],
            "sections": {name: [one.plain() for one in found] for name, found in self.sections.items()},
        }
        write_atomically(path, json.dumps(plain, indent=1, ensure_ascii=False))

    @classmethod
    def kept(cls, folder: Path) -> list["Card"]:
        """Return the cards in the folder of all, but for those that an earlier version has written otherwise."""
        found = list[Card]()
        for path in sorted(folder.glob("*/*/*/card.json")):
            with contextlib.suppress(KeyError, TypeError, ValueError):
                found.append(cls.read(path))
        return found

    @classmethod
    def read(cls, path: Path) -> "Card":
        """Return what :meth:`write` has kept."""
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        plain["properties"] = [Property(**one) for one in plain["properties"]]
        plain["sections"] = {
            name: [Finding.restored(one) for one in found] for name, found in plain["sections"].items()
        }
        return cls(**plain)


def folder_of(name: str, baseline: str) -> str:
    """Return the name of the folder of a condition: what is compared with another baseline lies elsewhere."""
    return name if baseline in (USUAL, name) else f"{name}-against-{baseline}"


def measured_sections(
    batch: Batch, base: Batch, truth: TrueCredit, budget: Budget
) -> Iterator[tuple[str, list[Finding]]]:
    """Yield what one batch says."""
    yield "batch", list(effects(batch, base))
    yield "gradient", list(turned(batch, base, budget.batch))
    yield "truth", list(agreed(batch, base, truth))
    yield "cost", list(costs(batch, base))


def described(batch: Batch) -> dict[str, Any]:
    """Return what a card says of a stack without a baseline."""
    return {"properties": list(properties(batch)), "warnings": warnings(batch), "page": batch.page}


def decided(card: Card, learnt: Learnt) -> tuple[str, str]:
    """Return the verdict and its sentence.

    Where the stack moves no credit and every answer of every run is that of the baseline, there is no difference; else
    the verdict is that of the paired runs.
    """
    moved = card.finding("moved")
    if learnt.alike and moved and moved.estimate < ROUNDING:
        credit = f"{card.name} gives every token the baseline's credit, up to a common factor"
        return NONE, f"{credit}, and every run answers as the baseline's does."
    verdict, compared = learnt.comparison.verdict, learnt.comparison
    assert compared.test is not None
    runs = f"{len(learnt.runs)} paired runs of {learnt.steps} steps"
    within = f"; {inside(compared.test)}" if verdict.startswith("equivalent") else ""
    return verdict, f"After {runs} {card.name} ends {points(compared.test)} from {card.baseline}{within}."
