"""The request to an engine and its result."""

from dataclasses import dataclass

from torch import Tensor


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
            raise ValueError(
                f"sampling expects top_p = 1 and top_k = 0, got top_p = {self.top_p} and top_k = {self.top_k}. "
                "A truncated sampler is not the policy that is optimised: its importance ratios are wrong from the "
                "first update, and surprisal is zero wherever one token survives. Lower the temperature instead."
            )
        if self.completions < 1 or self.max_tokens < 1 or not self.temperature > 0:
            raise ValueError(
                "sampling expects completions >= 1, max_tokens >= 1 and temperature > 0, got "
                f"{self.completions}, {self.max_tokens} and {self.temperature}."
            )


@dataclass
class Samples:
    """What an engine returns; rows ``p * G`` to ``(p + 1) * G - 1`` answer prompt p.

    Attributes:
        completion_ids: Token ids of the completions, right-padded, ``(B, T)`` int64.
        mask: True on sampled tokens, end-of-sequence included, ``(B, T)`` bool.
        logprobs: Log-probability of the sampled token under the very distribution it was drawn from, ``(B, T)``
            float32, nats.
        truncated: True where ``max_tokens`` came before the end, ``(B,)`` bool.
        entropy: Entropy of that distribution over the whole vocabulary, ``(B, T)`` float32, nats; None from an engine
            that cannot tell.
        sum_pi_squared: Sum of its squared probabilities, ``(B, T)`` float32; None from an engine that cannot tell.
        engine_logprobs: Log-probabilities that the engine reported, where the trainer's have replaced them, ``(B, T)``
            float32; else None.
        hidden: Last hidden state from which each token was drawn, ``(B, T, D)``, zero on padding; None unless it was
            asked for.

    """

    completion_ids: Tensor
    mask: Tensor
    logprobs: Tensor
    truncated: Tensor
    entropy: Tensor = None  # pyright: ignore[reportAssignmentType]
    sum_pi_squared: Tensor = None  # pyright: ignore[reportAssignmentType]
    engine_logprobs: Tensor | None = None
    hidden: Tensor | None = None
