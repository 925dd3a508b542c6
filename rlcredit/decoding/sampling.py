"""The request to an engine and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from torch import Tensor

from rlcredit.policy.policy import TokenScores


@dataclass
class Sampling:
    """How completions are drawn.

    Args:
        completions: Completions per prompt; G in training.
        max_tokens: Most tokens of a completion; one that has not ended by then is cut (and counted as truncated).
        temperature: Temperature T; the policy that is sampled *and* optimised is ``softmax(logits / T)``.
        top_p: Probability mass kept; must stay 1.
        top_k: Number of tokens kept; must stay 0.

    """

    completions: int = 16
    max_tokens: int = 128
    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self) -> None:
        """Refuse what would make sampler and trainer two policies."""
        if self.top_p != 1.0 or self.top_k != 0:
            name, value, neutral_value = ("top_k", self.top_k, 0) if self.top_k else ("top_p", self.top_p, 1)
            raise ValueError(
                f"{name}: expected {neutral_value}, got {value:g}. A truncated sampler is not the policy that is "
                "optimised, and its importance ratios are wrong. Lower the temperature instead."
            )
        for name in ("completions", "max_tokens"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name}: expected a number from 1 on, got {value}. One is the least that is sampled.")
        if not 0 < self.temperature < inf:
            greedy = "; `rlcredit evaluate --greedy` takes the likeliest token" if self.temperature == 0 else ""
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature:g}. Say 0.7{greedy}.")


@dataclass
class Samples:
    """What an engine returns; rows ``p * G`` to ``(p + 1) * G - 1`` answer prompt p.

    Attributes:
        completion_ids: Token ids of the completions, right-padded, ``(B, T)`` int64.
        mask: True on sampled tokens, end-of-sequence included, ``(B, T)`` bool.
        logprobs: Log-probability of the sampled token under the very distribution it was drawn from, ``(B, T)``
            float32, nats.
        truncated: True where a limit came before the end, ``(B,)`` bool.
        entropy: Entropy of that distribution over the whole vocabulary, ``(B, T)`` float32, nats; None from an engine
            that cannot tell.
        sum_pi_squared: Sum of its squared probabilities, ``(B, T)`` float32; None from an engine that cannot tell.
        engine_logprobs: Log-probabilities that the engine reported, where the trainer's have replaced them, ``(B, T)``
            float32; else None.
        hidden: Last hidden state from which each token was drawn, ``(B, T, D)``, zero on padding; None unless it was
            asked for.
        adapter: Factors of the adapter that drew them, as :meth:`rlcredit.policy.policy.Policy.use_adapter` takes them,
            where it is an earlier one; None where the policy as it is now drew them.
        turn: Number of the turn of each sampled token, -1 elsewhere, ``(B, T)`` int64, of episodes; ``mask`` then has
            gaps, where ``completion_ids`` holds what the environment said. Else None.
        waited: Seconds that the trainer waited for them; None where sampling is not ahead of training.

    """

    completion_ids: Tensor
    mask: Tensor
    logprobs: Tensor
    truncated: Tensor
    entropy: Tensor = None  # pyright: ignore[reportAssignmentType]
    sum_pi_squared: Tensor = None  # pyright: ignore[reportAssignmentType]
    engine_logprobs: Tensor | None = None
    hidden: Tensor | None = None
    adapter: Sequence[Tensor] | None = None
    turn: Tensor | None = None
    waited: float | None = None

    def replace_scores(self, scores: TokenScores) -> "Samples":
        """Return the samples with the trainer's scores; what the engine reported stands beside them."""
        return replace(
            self,
            logprobs=scores.logprobs,
            entropy=scores.entropy,
            sum_pi_squared=scores.sum_pi_squared,
            engine_logprobs=self.logprobs.where(self.mask, 0),
        )
