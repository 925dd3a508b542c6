"""Cards made by hand."""

from rlcredit.cards.card import BASELINE_VERDICT, Card
from rlcredit.cards.finding import Finding
from rlcredit.cards.stack_properties import StackProperty

OWN = """
from callbacks import CreditOperator


class Doubled(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        rollout.advantages = 2 * rollout.advantages
        return {}
"""
"""An operator of one's own."""


def made(name, gain, verdict="better", organism="aligned"):
    """Return a card with few findings."""
    learning = [
        Finding("gain", "gain at the end, paired", gain, "points", gain - 1, gain + 1, sentence="It gains."),
        Finding("area_gain", "gain on the way, paired", gain / 2, "points", gain / 2 - 1, gain / 2 + 1),
        Finding("collapses", "runs that collapsed", 0.0, baseline=0.0),
    ]
    batch = [Finding("moved", "credit moved", 0.25, "share", 0.2, 0.3, sentence="A quarter of <b>it</b>.")]
    return Card(
        name,
        organism,
        "GRPO",
        "quick",
        (name, organism, "GRPO"),
        f"GRPO() > {name}()",
        "GRPO()",
        "0123abc",
        ("5eed", "ba5e"),
        properties=[StackProperty("order", True, "it does not matter"), StackProperty("padding", False, "it matters")],
        sections={"batch": batch, "learning": [] if verdict == BASELINE_VERDICT else learning},
        verdict=verdict,
        sentence=f"{name}: {verdict}.",
        page="<p>heat</p>",
    )
