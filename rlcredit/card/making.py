"""Cards on one organism: what is measured, once, and what is found again."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.card.arms import Arm, learnt
from rlcredit.card.batch import Batch, measured
from rlcredit.card.budget import Budget
from rlcredit.card.card import ITSELF, UNTRAINED, Card, decided, described, folder_of, measured_sections
from rlcredit.card.comparable import beside, rate
from rlcredit.card.dependence import MEASURING, digest, fingerprint
from rlcredit.card.organisms import Organism
from rlcredit.card.subject import Subject
from rlcredit.command_line.explain import call
from rlcredit.files import write_atomically
from rlcredit.inputs import strict_yaml
from rlcredit.notices import tell
from rlcredit.oracle import TrueCredit
from rlcredit.tracking.versions import git_commit


@dataclass
class Desk:
    """Where cards are made: an organism, a baseline, a budget.

    Args:
        organism: on which is measured.
        baseline: with which all are compared.
        budget: how much is spent.
        folder: of all cards.
        slots: runs at a time.
        threads: of a run, and of the measurement.

    """

    organism: Organism
    baseline: Subject
    budget: Budget
    folder: Path
    slots: int | None = None
    threads: int = 1
    _base: Batch | None = field(default=None, init=False)

    def card(self, subject: Subject) -> Card:
        """Return the card of a condition; what has been measured before is read."""
        place = self._place(subject)
        file, key = place / "card.json", place / "key.txt"
        identity = self._identity(subject)
        if file.is_file() and key.is_file() and key.read_bytes() == identity.encode():
            try:
                return replace(Card.read(file), origins=self._origins(subject))
            except ValueError as error:
                tell(f"warning: {error} It is made anew now.")
        card = self._made(subject)
        for each in (subject, self.baseline):
            each.refuse_edits()
        key.unlink(missing_ok=True)
        card.write(file)
        write_atomically(key, identity)
        return card

    def base(self) -> Batch:
        """Return the batch under the baseline, with true credit; measured once."""
        if self._base is None:
            place = self._place(self.baseline)
            known = self._known_truth()
            self._base = self._batch(self.baseline.written(place), known)
            if known is None and self._base.truth is not None:
                torch.save({**vars(self._base.truth), "key": self._truth_key()}, self._truth_file())
        return self._base

    def _made(self, subject: Subject) -> Card:
        """Measure a condition, and run what is missing."""
        tell(f"measuring  {subject.name} on {self.organism.name}")
        condition = subject.written(self._place(subject))
        base = self.base()
        assert base.truth is not None
        itself = _unnamed(subject) == _unnamed(self.baseline)
        batch = base if itself else self._batch(condition, base.truth)
        if batch.rollout.tokens != base.rollout.tokens:
            raise ValueError(f"{subject.name} draws other completions than the baseline, with which it is compared.")
        card = Card(
            subject.name,
            self.organism.name,
            self.baseline.name,
            self.budget.name,
            self._origins(subject),
            _written(batch),
            _written(base),
            git_commit(),
            (fingerprint(self._organism()), fingerprint([self.baseline.content])),
            beside(batch, base),
            **described(batch),
        )
        card.sections = dict(measured_sections(batch, base, base.truth, self.budget))
        if itself:
            card.verdict, card.sentence = ITSELF, f"{subject.name} is what the others are compared with."
        elif not self.budget.seeds:
            card.verdict, card.sentence = UNTRAINED, "This is what one batch says; no run says what is learnt from it."
        else:
            self._learn(card, subject, condition, batch, base)
        return card

    def _learn(self, card: Card, subject: Subject, condition: Path, batch: Batch, base: Batch) -> None:
        """Run what is missing, and add what was learnt."""
        arm = Arm(subject.name, (*self.organism.files, str(condition)), rate(batch.resolution.leaves))
        other = self._place(self.baseline) / "condition.yaml"
        baseline = Arm(self.baseline.name, (*self.organism.files, str(other)), rate(base.resolution.leaves))
        place = self.folder / "arms" / self.organism.name
        found = learnt(arm, baseline, self.budget, place, self.slots, self.threads)
        card.sections = {**card.sections, "learning": list(found.findings())}
        card.verdict, card.sentence = decided(card, found)

    def _batch(self, condition: Path, truth: TrueCredit | None) -> Batch:
        files, kept = [*self.organism.files, str(condition)], condition.parent
        return measured(files, self.budget, truth, threads=self.threads, kept=kept)

    def _place(self, subject: Subject) -> Path:
        return self.folder / self.organism.name / self.budget.name / folder_of(subject.name, self.baseline.name)

    def _truth_file(self) -> Path:
        return self.folder / self.organism.name / self.budget.name / "truth.pt"

    def _known_truth(self) -> TrueCredit | None:
        file = self._truth_file()
        if not file.is_file():
            return None
        kept = torch.load(file, weights_only=True)
        return TrueCredit(**kept) if kept.pop("key") == self._truth_key() else None

    def _truth_key(self) -> str:
        """Return what true credit depends on: who draws the batch, and how."""
        content = {key: value for key, value in self.baseline.content.items() if key != "trainer"}
        return digest([fingerprint([*self._organism(), content], under=MEASURING), asdict(self.budget)])

    def _identity(self, subject: Subject) -> str:
        """Return what a card depends on, and what is written on it."""
        conditions = [
            fingerprint([*self._organism(), {**each.content, "name": each.name}], under=MEASURING)
            for each in (subject, self.baseline)
        ]
        return digest([conditions, asdict(self.budget), [each.name for each in fields(Card)]])

    def _origins(self, subject: Subject) -> tuple[str, str, str]:
        return subject.origin, self.organism.origin, self.baseline.origin

    def _organism(self) -> list[Any]:
        return [strict_yaml.read(Path(file)) for file in self.organism.files]


def _unnamed(subject: Subject) -> dict[str, Any]:
    return {key: value for key, value in subject.content.items() if key != "condition"}


def _written(batch: Batch) -> str:
    return " > ".join(call(operator) for operator in batch.stack) or "no operators: REINFORCE"
