"""The agreement of assigned credit with true credit, which is measured by continuations."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import torch
from torch import Tensor

from rlcredit.cards.card_batch import CardBatch
from rlcredit.cards.finding import Finding, jackknife_estimate
from rlcredit.oracle import TrueCredit
from rlcredit.oracle.credit_agreement import (
    credit_fork_mask,
    measure_credit_cosines,
    measure_credit_detection,
    measure_wrong_signs,
)
from rlcredit.statistics.collapse import clopper_pearson_limit

FINDING_SENTENCES = {
    "cosine_within": "Inside completions its credit has a cosine of {0:.2f} with true credit, the baseline's {1:.2f}.",
    "cosine": "Over all tokens its credit has a cosine of {0:.2f} with true credit, the baseline's {1:.2f}.",
    "fork_area": "The size of its credit finds the tokens that decide with an area of {0:.2f} (0.5 is chance).",
    "mass": "A tenth of the tokens, those with the most credit, holds {0:.0%} of the true credit.",
    "wrong_signs": "On {0:.1%} of the {2} tokens that decide it has the wrong sign, the baseline's on {1:.1%}; {3:.1%} "
    "of them have no credit.",
}
"""Sentences, by the name of the finding."""


def measure_credit_agreement(batch: CardBatch, base: CardBatch, truth: TrueCredit) -> Iterator[Finding]:
    """Yield the agreement of the ledger with true credit.

    Args:
        batch: Batch under the stack that is judged.
        base: Same completions under the baseline.
        truth: True credit of some of the completions.

    """
    rows = list(truth.rows)
    ledgers = [truth.average_units(card_batch.rollout.advantages[rows].cpu()) for card_batch in (batch, base)]
    decisive = int(credit_fork_mask(truth).sum())
    idle = float((ledgers[0][credit_fork_mask(truth)] == 0).double().mean()) if decisive else 0.0
    quantities = {
        "cosine_within": (
            "agreement inside completions",
            lambda t, a: measure_credit_cosines(t, a)["cosine_within"],
            "number",
        ),
        "cosine": ("agreement over all tokens", lambda t, a: measure_credit_cosines(t, a)["cosine"], "number"),
        "fork_area": ("area for finding forks", lambda t, a: measure_credit_detection(t, a)["auc"], "number"),
        "mass": ("true credit on the top tenth", lambda t, a: measure_credit_detection(t, a)["mass_10"], "share"),
        "wrong_signs": ("wrong signs on forks", lambda t, a: measure_wrong_signs(t, a).get("opposite", 0.0), "share"),
    }
    if not decisive or idle == 1:
        del quantities["wrong_signs"]
    for name, (title, quantity, unit) in quantities.items():
        minimum = -1.0 if name.startswith("cosine") else 0.0
        estimate = jackknife_estimate(
            lambda places, of=quantity: of(select_completions(truth, places), ledgers[0][places]), len(rows), minimum
        )
        if name == "wrong_signs":
            estimate = _widen_extreme_share(estimate, int(credit_fork_mask(truth).any(-1).sum()))
        flat = quantity(truth, ledgers[1])
        sentence = FINDING_SENTENCES[name].format(estimate["estimate"], flat, decisive, idle)
        yield Finding(name, title, unit=unit, baseline=flat, sentence=sentence, **estimate)
    yield Finding(
        "forks",
        "tokens that decide",
        decisive / max(1, int(truth.mask.sum())),
        "share",
        sentence=f"{decisive} of {int(truth.mask.sum()):,} tokens change the chance of a right answer significantly.",
    )


def _widen_extreme_share(estimate: dict[str, float], completions: int) -> dict[str, float]:
    """Return a share of none or all with an interval; the jackknife would give it none.

    Leaving out a completion then makes no difference. What is left is how often this happens by chance in so many
    completions, as if each had one such token (Clopper and Pearson).
    """
    limit = clopper_pearson_limit(0, completions, 0.975)
    if estimate["estimate"] == 0:
        return {**estimate, "high": limit}
    return {**estimate, "low": 1 - limit} if estimate["estimate"] == 1 else estimate


def select_completions(truth: TrueCredit, places: Sequence[int]) -> TrueCredit:
    """Return the credit of some of the completions."""
    rows = torch.tensor(places)
    parts = {field.name: getattr(truth, field.name) for field in fields(truth)}
    cut = {name: value[rows] for name, value in parts.items() if isinstance(value, Tensor)}
    return replace(truth, rows=[truth.rows[place] for place in places], **cut)
