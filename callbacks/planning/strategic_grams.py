"""Strategic grams: a token plans if it belongs to a phrase that steers the reasoning."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.spans import phrase_plan_mask, plan_coverage

PLANNING_PHRASES = (
    *("wait let me", "let me think", "on second thought"),  # hesitation
    *("let me check", "let me verify", "is this right", "double check"),  # verification
    *("try another approach", "go back and", "start over", "that's not right", "that doesn't work"),  # backtracking
    *("another way to", "or we could", "what if we"),  # alternatives
    *("notice that", "the key is", "the key insight"),  # insight
)
"""The 18 strategic phrases of the SEPA paper, after the Strategic Grams of Wang et al. (2025, arXiv:2509.03646)."""


class StrategicGrams(CreditOperator, reads="tokens turn", writes="plan_mask", usual=True):
    """Mark as planning the tokens that spell one of a list of phrases.

    Phrases are searched in the text and mapped to tokens by their characters, so that apostrophes, hyphens, line breaks
    and words split over tokens match, and nothing beside a phrase is marked; see
    :func:`rlcredit.formulas.spans.phrase_spans`. The default phrases are the SEPA paper's, after Wang et al. (2025,
    arXiv:2509.03646).

    Args:
        phrases: Phrases, each words separated by spaces. None: the 18 of the SEPA paper, such as "let me check" and
            "start over". An empty list marks nothing.

    """

    def __init__(self, phrases: list[str] | None = None) -> None:
        super().__init__()
        if isinstance(phrases, str) or not all(any(map(str.isalnum, phrase)) for phrase in phrases or ()):
            raise ValueError(f"StrategicGrams expects a list of phrases made of words, got {phrases!r}.")
        self.phrases = phrases

    def assign(self, rollout: Rollout) -> Metrics:
        """Mark; log the share of tokens marked and of completions that plan at all."""
        phrases = PLANNING_PHRASES if self.phrases is None else self.phrases
        rollout.plan_mask = phrase_plan_mask(rollout.tokens, phrases, rollout.turn)
        return plan_coverage(rollout.plan_mask, rollout.mask)
