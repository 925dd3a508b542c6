"""Cards on one organism: what is measured, once, and what is found again."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.cache_key import MEASURING, fingerprint_configs, hash_json_content
from rlcredit.cards.card import (
    ITSELF,
    UNTRAINED,
    Card,
    conclude_card,
    describe_card_stack,
    measure_card_sections,
    name_card_folder,
)
from rlcredit.cards.card_batch import CardBatch, measure_card_batch
from rlcredit.cards.card_policies import CardPolicy
from rlcredit.cards.comparability import list_unequal_settings, read_learning_rate
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.paired_runs import TrainingCondition, run_paired_training
from rlcredit.cli.explain import render_call
from rlcredit.config import strict_yaml
from rlcredit.oracle import TrueCredit
from rlcredit.outputs.code_versions import read_git_commit


@dataclass
class CardBuilder:
    """Where cards are made: an organism, a baseline, a budget.

    Args:
        organism: Test policy on which operators are measured.
        baseline: Condition with which all others are compared.
        budget: Budget of the measurement.
        folder: Folder of all cards.
        slots: Runs at a time.
        threads: CPU threads per run, and of the measurement.

    """

    organism: CardPolicy
    baseline: CardCondition
    budget: CardBudget
    folder: Path
    slots: int | None = None
    threads: int = 1
    _base: CardBatch | None = field(default=None, init=False)

    def build_card(self, subject: CardCondition) -> Card:
        """Return the card of a condition; what has been measured before is read."""
        place = self._card_folder(subject)
        file, key = place / "card.json", place / "key.txt"
        identity = self._card_key(subject)
        if file.is_file() and key.is_file() and key.read_bytes() == identity.encode():
            try:
                return replace(Card.read(file), origins=self._origins(subject))
            except ValueError as error:
                print_message(f"warning: {error} It is made anew now.")
        card = self._measure_card(subject)
        for each in (subject, self.baseline):
            each.refuse_edits()
        key.unlink(missing_ok=True)
        card.write(file)
        write_atomically(key, identity)
        return card

    def measure_baseline(self) -> CardBatch:
        """Return the batch under the baseline, with true credit; measured once."""
        if self._base is None:
            place = self._card_folder(self.baseline)
            known = self._known_truth()
            self._base = self._measure_condition(self.baseline.write_files(place), known)
            if known is None and self._base.truth is not None:
                torch.save({**vars(self._base.truth), "key": self._truth_key()}, self._truth_file())
        return self._base

    def _measure_card(self, subject: CardCondition) -> Card:
        """Measure a condition, and run what is missing."""
        print_message(f"measuring  {subject.name} on {self.organism.name}")
        condition = subject.write_files(self._card_folder(subject))
        base = self.measure_baseline()
        assert base.truth is not None
        itself = _drop_condition_name(subject) == _drop_condition_name(self.baseline)
        batch = base if itself else self._measure_condition(condition, base.truth)
        if batch.rollout.tokens != base.rollout.tokens:
            raise ValueError(f"{subject.name} draws other completions than the baseline, with which it is compared.")
        card = Card(
            subject.name,
            self.organism.name,
            self.baseline.name,
            self.budget.name,
            self._origins(subject),
            _format_operator_stack(batch),
            _format_operator_stack(base),
            read_git_commit(),
            (fingerprint_configs(self._read_policy_configs()), fingerprint_configs([self.baseline.content])),
            list_unequal_settings(batch, base),
            **describe_card_stack(batch),
        )
        card.sections = dict(measure_card_sections(batch, base, base.truth, self.budget))
        if itself:
            card.verdict, card.sentence = ITSELF, f"{subject.name} is what the others are compared with."
        elif not self.budget.seeds:
            card.verdict, card.sentence = UNTRAINED, "This is what one batch says; no run says what is learnt from it."
        else:
            self._add_training_outcome(card, subject, condition, batch, base)
        return card

    def _add_training_outcome(
        self, card: Card, subject: CardCondition, condition: Path, batch: CardBatch, base: CardBatch
    ) -> None:
        """Run what is missing, and add what was learnt."""
        arm = TrainingCondition(
            subject.name, (*self.organism.files, str(condition)), read_learning_rate(batch.resolution.leaves)
        )
        other = self._card_folder(self.baseline) / "condition.yaml"
        baseline = TrainingCondition(
            self.baseline.name, (*self.organism.files, str(other)), read_learning_rate(base.resolution.leaves)
        )
        place = self.folder / "arms" / self.organism.name
        found = run_paired_training(arm, baseline, self.budget, place, self.slots, self.threads)
        card.sections = {**card.sections, "learning": list(found.findings())}
        card.verdict, card.sentence = conclude_card(card, found)

    def _measure_condition(self, condition: Path, truth: TrueCredit | None) -> CardBatch:
        files, kept = [*self.organism.files, str(condition)], condition.parent
        return measure_card_batch(files, self.budget, truth, threads=self.threads, kept=kept)

    def _card_folder(self, subject: CardCondition) -> Path:
        return self.folder / self.organism.name / self.budget.name / name_card_folder(subject.name, self.baseline.name)

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
        return hash_json_content(
            [fingerprint_configs([*self._read_policy_configs(), content], under=MEASURING), asdict(self.budget)]
        )

    def _card_key(self, subject: CardCondition) -> str:
        """Return what a card depends on, and what is written on it."""
        conditions = [
            fingerprint_configs([*self._read_policy_configs(), {**each.content, "name": each.name}], under=MEASURING)
            for each in (subject, self.baseline)
        ]
        return hash_json_content([conditions, asdict(self.budget), [each.name for each in fields(Card)]])

    def _origins(self, subject: CardCondition) -> tuple[str, str, str]:
        return subject.origin, self.organism.origin, self.baseline.origin

    def _read_policy_configs(self) -> list[Any]:
        return [strict_yaml.read_yaml(Path(file)) for file in self.organism.files]


def _drop_condition_name(subject: CardCondition) -> dict[str, Any]:
    return {key: value for key, value in subject.content.items() if key != "condition"}


def _format_operator_stack(batch: CardBatch) -> str:
    return " > ".join(render_call(operator) for operator in batch.stack) or "no operators: REINFORCE"
