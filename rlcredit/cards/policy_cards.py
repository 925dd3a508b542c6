"""The cards of one test policy: each measurement is made once and reused afterwards."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.campaign.run_process import prepare_forks
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.builder import build_card
from rlcredit.cards.cache_key import CARD_MODULE, fingerprint_configs, hash_json_content
from rlcredit.cards.card import (
    BASELINE_VERDICT,
    CARD_REPAIR,
    UNTRAINED_SENTENCE,
    UNTRAINED_VERDICT,
    Card,
    name_card_folder,
)
from rlcredit.cards.card_batch import MEASUREMENT_PARTS, CardBatch, measure_card_batch
from rlcredit.cards.card_policies import CardPolicy
from rlcredit.cards.comparability import list_unequal_settings, read_learning_rate
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.credit_effects import measure_credit_cost, measure_credit_effects
from rlcredit.cards.finding import Finding
from rlcredit.cards.gradient_change import measure_gradient_change
from rlcredit.cards.measuring_bar import MeasuringBar
from rlcredit.cards.paired_runs import PairedRuns, TrainingCondition
from rlcredit.cards.training_outcome import conclude_card
from rlcredit.cards.true_credit import measure_credit_agreement
from rlcredit.cli.application import read_expanded_config
from rlcredit.cli.engine_text import build_engine
from rlcredit.oracle import TrueCredit

_BATCH_FINDINGS = ("agreement", "cosine_within")
"""Findings that a card leads with if nothing is trained."""


@dataclass
class PolicyCards:
    """Report cards of one test policy, one baseline and one budget.

    Args:
        organism: Test policy on which operators are measured.
        baseline: Condition with which all others are compared.
        budget: Budget of the measurement.
        folder: Folder of all cards.
        slots: Runs at a time.
        threads: CPU threads per run, and of the measurement.
        engine: Engine that samples the batch, as it is typed; that of the test policy if None.

    """

    organism: CardPolicy
    baseline: CardCondition
    budget: CardBudget
    folder: Path
    slots: int | None = None
    threads: int = 1
    engine: str | None = None
    _base: CardBatch | None = field(default=None, init=False)

    def make_card(self, candidate: CardCondition) -> Card:
        """Return the card of a condition; earlier measurements are reused."""
        folder = self._card_folder(candidate)
        file, key_file = folder / "card.json", folder / "key.txt"
        key = self._card_key(candidate)
        if file.is_file() and key_file.is_file() and key_file.read_bytes() == key.encode():
            try:
                return replace(Card.read(file), origins=(candidate.origin, self.organism.origin, self.baseline.origin))
            except ValueError as error:
                print_message(f"warning: {str(error).removesuffix(CARD_REPAIR)}It is made anew now.")
        card = self._measure_card(candidate)
        for condition in (candidate, self.baseline):
            condition.refuse_edits()
        key_file.unlink(missing_ok=True)
        card.write(file)
        write_atomically(key_file, key)
        return card

    def measure_baseline(self, bar: MeasuringBar) -> CardBatch:
        """Return the batch under the baseline with its true credit, which is measured once."""
        if self._base is None:
            bar.begin_condition(self.baseline.name)
            condition = self.baseline.write_files(self._card_folder(self.baseline))
            truth, completions = self._read_known_truth()
            self._base = self._measure_condition(condition, truth, bar)
            if truth is not None and completions != hash_json_content(self._base.rollout.tokens):
                truth = None  # a server answered otherwise
                self._base = self._measure_condition(condition, None, bar)
            if truth is None and self._base.truth is not None:
                marks = {"key": self._truth_key(), "completions": hash_json_content(self._base.rollout.tokens)}
                torch.save({**vars(self._base.truth), **marks}, self._truth_file)
        return self._base

    def _measure_card(self, candidate: CardCondition) -> Card:
        """Measure a condition, and execute its missing training runs."""
        condition = candidate.write_files(self._card_folder(candidate))
        if self.budget.seeds:
            prepare_forks()
        is_baseline = _drop_condition_name(candidate) == _drop_condition_name(self.baseline)
        with MeasuringBar(f"{candidate.name} on {self.organism.name}", self._count_parts(is_baseline)) as bar:
            base = self.measure_baseline(bar)
            bar.begin_condition(candidate.name)
            batch = base if is_baseline else self._measure_condition(condition, base.truth, bar)
            bar.begin_part("what follows from its batch")
            card = self._describe_batch(candidate, batch, base)
        if is_baseline:
            return replace(
                card, verdict=BASELINE_VERDICT, sentence=f"{card.name} is what the others are compared with."
            )
        if not self.budget.seeds:
            findings = [finding.sentence for name in _BATCH_FINDINGS if (finding := card.finding(name))]
            return replace(card, verdict=UNTRAINED_VERDICT, sentence=" ".join([*findings, UNTRAINED_SENTENCE]))
        runs = PairedRuns(self.budget, self.folder / "arms" / self.organism.name, self.slots, self.threads)
        outcome = runs.compare(
            self._make_training_condition(candidate, batch), self._make_training_condition(self.baseline, base)
        )
        verdict, sentence = conclude_card(card, outcome)
        sections = {**card.sections, "learning": list(outcome.findings())}
        return replace(card, sections=sections, curves=outcome.curves, verdict=verdict, sentence=sentence)

    def _make_training_condition(self, condition: CardCondition, batch: CardBatch) -> TrainingCondition:
        files = (*self.organism.files, str(self._card_folder(condition) / "condition.yaml"))
        updates = batch.updates["model.updates_per_rollout"]
        return TrainingCondition(condition.name, files, read_learning_rate(batch.resolution.leaves), updates)

    def _count_parts(self, is_baseline: bool) -> int:
        """Return the number of parts to measure: those of either batch, and the description."""
        base = 0 if self._base else MEASUREMENT_PARTS + (self._read_known_truth()[0] is None)
        return base + (0 if is_baseline else MEASUREMENT_PARTS) + 1

    def _describe_batch(self, candidate: CardCondition, batch: CardBatch, base: CardBatch) -> Card:
        """Return the card of a condition without a verdict: what two batches say."""
        if batch.rollout.tokens != base.rollout.tokens:
            raise ValueError(
                f"{candidate.name} samples other completions than the baseline, so that the two cannot be compared. "
                "Leave sampling and policy as they are, and use an engine that answers a seed always alike."
            )
        assert base.truth is not None
        sections: dict[str, list[Finding]] = {
            "batch": list(measure_credit_effects(batch, base)),
            "gradient": list(measure_gradient_change(batch, base, self.budget.batch)),
            "truth": list(measure_credit_agreement(batch, base, base.truth)),
            "cost": list(measure_credit_cost(batch, base)),
        }
        return build_card(
            candidate,
            self.baseline,
            batch,
            base,
            sections,
            origin=self.organism.origin,
            fingerprint=fingerprint_configs(self._read_policy_configs()),
            organism=self.organism.name,
            budget=self.budget.name,
            rewards=batch.resolution.task.rewards or "",
            beside=list_unequal_settings(batch, base),
        )

    def _measure_condition(self, condition: Path, truth: TrueCredit | None, bar: MeasuringBar) -> CardBatch:
        files = [*self.organism.files, str(condition)]
        engine = build_engine(self.engine) if self.engine else None
        return measure_card_batch(
            files, self.budget, truth, threads=self.threads, failure_folder=condition.parent, bar=bar, engine=engine
        )

    def _card_folder(self, condition: CardCondition) -> Path:
        return self._budget_folder / name_card_folder(condition.name, self.baseline.name)

    @property
    def _budget_folder(self) -> Path:
        return self.folder / self.organism.name / self.budget.name

    @property
    def _truth_file(self) -> Path:
        return self._budget_folder / "truth.pt"

    def _read_known_truth(self) -> tuple[TrueCredit | None, str | None]:
        """Return true credit that was measured before, and the hash of its completions; None without it."""
        if not self._truth_file.is_file():
            return None, None
        content = torch.load(self._truth_file, weights_only=True)
        key = content.pop("key")
        completions = content.pop("completions", None)
        return (TrueCredit(**content), completions) if completions and key == self._truth_key() else (None, None)

    def _truth_key(self) -> str:
        """Return the cache key of true credit: the policy and the settings that the batch is sampled with."""
        content = {key: value for key, value in self.baseline.content.items() if key != "trainer"}
        fingerprint = fingerprint_configs([*self._read_policy_configs(), content], module=CARD_MODULE)
        return hash_json_content([fingerprint, asdict(self.budget), *filter(None, [self.engine])])

    def _card_key(self, candidate: CardCondition) -> str:
        """Return the cache key of a card: everything that it depends on and shows."""
        conditions = [
            fingerprint_configs(
                [*self._read_policy_configs(), {**condition.content, "name": condition.name}], module=CARD_MODULE
            )
            for condition in (candidate, self.baseline)
        ]
        names = [part.name for part in fields(Card)]
        return hash_json_content([conditions, asdict(self.budget), names, *filter(None, [self.engine])])

    def _read_policy_configs(self) -> list[Any]:
        return [read_expanded_config(Path(file)) for file in self.organism.files]


def _drop_condition_name(candidate: CardCondition) -> dict[str, Any]:
    return {key: value for key, value in candidate.content.items() if key != "condition"}
