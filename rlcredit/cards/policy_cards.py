"""Building the cards of one test policy: each measurement is made once and reused afterwards."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.campaign.run_process import prepare_forks
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.cache_key import MEASURING, fingerprint_configs, hash_json_content
from rlcredit.cards.card import (
    ITSELF,
    UNTRAINED,
    Card,
    conclude_card,
    describe_card_stack,
    format_operator_stack,
    measure_card_sections,
    name_card_folder,
)
from rlcredit.cards.card_batch import PARTS, CardBatch, measure_card_batch
from rlcredit.cards.card_policies import CardPolicy
from rlcredit.cards.comparability import list_unequal_settings, read_learning_rate
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.measuring_bar import MeasuringBar
from rlcredit.cards.paired_runs import TrainingCondition, run_paired_training
from rlcredit.cli.application import read_expanded_config
from rlcredit.cli.engine_text import build_engine
from rlcredit.oracle import TrueCredit
from rlcredit.outputs.code_versions import read_git_commit


@dataclass
class CardBuilder:
    """Builder of report cards for one test policy, one baseline and one budget.

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

    def build_card(self, candidate: CardCondition) -> Card:
        """Return the card of a condition; earlier measurements are reused."""
        place = self._card_folder(candidate)
        file, key = place / "card.json", place / "key.txt"
        identity = self._card_key(candidate)
        if file.is_file() and key.is_file() and key.read_bytes() == identity.encode():
            try:
                return replace(Card.read(file), origins=self._origins(candidate))
            except ValueError as error:
                print_message(f"warning: {error} It is made anew now.")
        card = self._measure_card(candidate)
        for each in (candidate, self.baseline):
            each.refuse_edits()
        key.unlink(missing_ok=True)
        card.write(file)
        write_atomically(key, identity)
        return card

    def measure_baseline(self, bar: MeasuringBar) -> CardBatch:
        """Return the batch under the baseline with its true credit, which is measured once."""
        if self._base is None:
            bar.begin_condition(self.baseline.name)
            place = self._card_folder(self.baseline)
            condition, (known, of) = self.baseline.write_files(place), self._read_known_truth()
            self._base = self._measure_condition(condition, known, bar)
            if known is not None and of != hash_json_content(self._base.rollout.tokens):
                known, self._base = None, self._measure_condition(condition, None, bar)  # a server answered otherwise
            if known is None and self._base.truth is not None:
                kept = {"key": self._truth_key(), "completions": hash_json_content(self._base.rollout.tokens)}
                torch.save({**vars(self._base.truth), **kept}, self._truth_file())
        return self._base

    def _measure_card(self, candidate: CardCondition) -> Card:
        """Measure a condition, and execute its missing training runs."""
        condition = candidate.write_files(self._card_folder(candidate))
        if self.budget.seeds:
            prepare_forks()
        itself = _drop_condition_name(candidate) == _drop_condition_name(self.baseline)
        with MeasuringBar(f"{candidate.name} on {self.organism.name}", self._count_parts(itself)) as bar:
            base = self.measure_baseline(bar)
            assert base.truth is not None
            bar.begin_condition(candidate.name)
            batch = base if itself else self._measure_condition(condition, base.truth, bar)
            bar.begin_part("what follows from its batch")
            card = self._describe_batch(candidate, batch, base)
        if itself:
            card.verdict, card.sentence = ITSELF, f"{candidate.name} is what the others are compared with."
        elif not self.budget.seeds:
            card.verdict, card.sentence = UNTRAINED, "This is what one batch says; no run says what is learnt from it."
        else:
            self._add_training_outcome(card, candidate, condition, batch, base)
        return card

    def _count_parts(self, itself: bool) -> int:
        """Return how many parts there are to measure: those of either batch, and what follows."""
        base = 0 if self._base else PARTS + (self._read_known_truth()[0] is None)
        return base + (0 if itself else PARTS) + 1

    def _describe_batch(self, candidate: CardCondition, batch: CardBatch, base: CardBatch) -> Card:
        """Return the card of a condition without a verdict: what two batches say."""
        if batch.rollout.tokens != base.rollout.tokens:
            raise ValueError(
                f"{candidate.name} samples other completions than the baseline, so that the two cannot be compared. "
                "Leave sampling and policy as they are, and use an engine that answers a seed always alike."
            )
        card = Card(
            candidate.name,
            self.organism.name,
            self.baseline.name,
            self.budget.name,
            self._origins(candidate),
            format_operator_stack(batch.stack),
            format_operator_stack(base.stack),
            read_git_commit(),
            (fingerprint_configs(self._read_policy_configs()), fingerprint_configs([self.baseline.content])),
            list_unequal_settings(batch, base),
            **describe_card_stack(batch, base, batch.resolution.task.rewards or ""),
        )
        assert base.truth is not None
        card.sections = dict(measure_card_sections(batch, base, base.truth, self.budget))
        return card

    def _add_training_outcome(
        self, card: Card, candidate: CardCondition, condition: Path, batch: CardBatch, base: CardBatch
    ) -> None:
        """Execute the missing training runs, and add their results to the card."""
        judged = TrainingCondition(
            candidate.name, (*self.organism.files, str(condition)), read_learning_rate(batch.resolution.leaves)
        )
        other = self._card_folder(self.baseline) / "condition.yaml"
        baseline = TrainingCondition(
            self.baseline.name, (*self.organism.files, str(other)), read_learning_rate(base.resolution.leaves)
        )
        place = self.folder / "arms" / self.organism.name
        found = run_paired_training(judged, baseline, self.budget, place, self.slots, self.threads)
        card.sections = {**card.sections, "learning": list(found.findings())}
        card.curves = found.curves
        card.verdict, card.sentence = conclude_card(card, found)

    def _measure_condition(self, condition: Path, truth: TrueCredit | None, bar: MeasuringBar) -> CardBatch:
        files, kept = [*self.organism.files, str(condition)], condition.parent
        engine = build_engine(self.engine) if self.engine else None
        return measure_card_batch(files, self.budget, truth, threads=self.threads, kept=kept, bar=bar, engine=engine)

    def _card_folder(self, candidate: CardCondition) -> Path:
        return (
            self.folder / self.organism.name / self.budget.name / name_card_folder(candidate.name, self.baseline.name)
        )

    def _truth_file(self) -> Path:
        return self.folder / self.organism.name / self.budget.name / "truth.pt"

    def _read_known_truth(self) -> tuple[TrueCredit | None, str | None]:
        """Return true credit that was measured before, and the hash of its completions; None without it."""
        file = self._truth_file()
        if not file.is_file():
            return None, None
        kept = torch.load(file, weights_only=True)
        key, of = kept.pop("key"), kept.pop("completions", None)
        return (TrueCredit(**kept), of) if of and key == self._truth_key() else (None, None)

    def _truth_key(self) -> str:
        """Return the cache key of true credit: the policy and the settings that the batch is sampled with."""
        content = {key: value for key, value in self.baseline.content.items() if key != "trainer"}
        return hash_json_content(
            [
                fingerprint_configs([*self._read_policy_configs(), content], under=MEASURING),
                asdict(self.budget),
                *filter(None, [self.engine]),
            ]
        )

    def _card_key(self, candidate: CardCondition) -> str:
        """Return the cache key of a card: everything that it depends on and shows."""
        conditions = [
            fingerprint_configs([*self._read_policy_configs(), {**each.content, "name": each.name}], under=MEASURING)
            for each in (candidate, self.baseline)
        ]
        shown = [each.name for each in fields(Card)]
        return hash_json_content([conditions, asdict(self.budget), shown, *filter(None, [self.engine])])

    def _origins(self, candidate: CardCondition) -> tuple[str, str, str]:
        return candidate.origin, self.organism.origin, self.baseline.origin

    def _read_policy_configs(self) -> list[Any]:
        return [read_expanded_config(Path(file)) for file in self.organism.files]


def _drop_condition_name(candidate: CardCondition) -> dict[str, Any]:
    return {key: value for key, value in candidate.content.items() if key != "condition"}
