"""How undecided the policy was: surprisal and true entropy, from logits or straight from hidden states."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LOGIT_CHUNK_BYTES = {"cpu": 2**26, "cuda": 2**30}
"""Bytes of logits held at one time: 110 positions with a vocabulary of 151,936 on a processor, 1,766 on an accelerator,
which is idle with fewer; up to three tensors of this size coexist."""

MAX_SAVED_BYTES = 2**24
"""Logits of at most this many bytes are kept for the backward pass."""


def surprisal(logprobs: Tensor) -> Tensor:
    r"""Return :math:`-\log \pi(o_t)` in nats: how unexpected the sampled token was.

    It is one random draw, and its mean is the entropy.
    """
    return -logprobs


def predictive_variance(logprobs: Tensor) -> Tensor:
    r"""Return :math:`p(1-p)` of the sampled token, the Bernoulli variance of drawing it.

    It rises with surprisal where p > 1/2 and falls with it where p < 1/2: unlikely tokens count as certain.

    Example:
        >>> predictive_variance(torch.tensor([0.9, 0.5, 0.1]).log())
        tensor([0.0900, 0.2500, 0.0900])

    """
    return logprobs.exp() * -logprobs.expm1()


CERTAIN_REMAINDER = 1e-6
"""Below this probability of all other tokens, a token counts as certain."""


def token_odds(logprobs: Tensor) -> Tensor:
    r"""Return :math:`\pi / (1 - \pi)` of the sampled token, zero where it was certain.

    Args:
        logprobs: Log-probability of the sampled token, any shape.

    Returns:
        At most one million, same shape, float64.

    Example:
        >>> token_odds(torch.tensor([0.9, 0.5, 1.0]).log())
        tensor([9.0000, 1.0000, 0.0000], dtype=torch.float64)

    """
    others_probability = -logprobs.double().expm1()
    return ((1 - others_probability) / others_probability).where(others_probability > CERTAIN_REMAINDER, 0)


def squared_score_norm(logprobs: Tensor, sum_pi_squared: Tensor) -> Tensor:
    r"""Return the squared norm of the gradient of :math:`\log \pi(o_t)` with respect to the logits.

    .. math:: \sum_v \bigl(1[v = o] - \pi(v)\bigr)^2 = 1 - 2 \pi(o) + \textstyle\sum_v \pi(v)^2

    Args:
        logprobs: Log-probability of the sampled token, any shape.
        sum_pi_squared: Sum of squared probabilities of the distribution the token was drawn from, same shape.

    Returns:
        Non-negative, same shape.

    Example:
        >>> squared_score_norm(torch.tensor([0.5]).log(), torch.tensor([0.5]))  # a fair coin
        tensor([0.5000])

    """
    return (1 - 2 * logprobs.exp() + sum_pi_squared).clamp(min=0)


def logprobs_and_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    r"""Score ``targets`` under ``softmax(logits)``.

    .. math:: \log \pi(o) = z_o - \mathrm{lse}(z), \qquad H = -\sum_i p_i \log p_i \ge 0

    Args:
        logits: Logits of the distribution meant, temperature already applied, shape ``(..., V)``.
        targets: Token ids, shape ``(...)``.

    Returns:
        Log-probability of the targets and Shannon entropy over the whole vocabulary, in nats, float32, shape ``(...)``.

    Example:
        >>> logprob, entropy = logprobs_and_entropy(torch.zeros(1, 4), torch.tensor([2]))
        >>> logprob.item() == -entropy.item()  # uniform: both are log 4
        True

    """
    log_p = logits.float().log_softmax(-1)
    # 0 * -inf: a token excluded by the model has probability zero and no share in the entropy.
    entropy = -(log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(-1)
    return log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1), entropy


def tempered_logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    """Return ``hidden @ weight.T / temperature`` in float32: the one head of sampler and trainer.

    The product is taken in the precision of the weights, inside autocast or not, so that both see one distribution.

    Args:
        hidden: Last hidden states, shape ``(N, D)``.
        weight: Output embedding, shape ``(V, D)``.
        temperature: Temperature T by which logits are divided.

    Returns:
        Shape ``(N, V)`` float32.

    """
    with torch.autocast(hidden.device.type, enabled=False):
        return (hidden.to(weight.dtype) @ weight.T).float().div_(temperature)


def _softmax_statistics(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log-probability, entropy, sum of squares and the probabilities; the logits are overwritten."""
    # Subtract the largest logit, so that a nearly certain token differs from a certain one.
    shifted_logits = logits.sub_(logits.amax(-1, keepdim=True))
    p = shifted_logits.softmax(-1)
    # On a long row the softmax kernel's own normaliser is less accurate than the sum of what it returns.
    total = p.sum(-1)
    largest = (p.amax(-1) / total).log()
    logprobs = shifted_logits.gather(-1, targets[:, None]).squeeze(-1) + largest
    entropy = -largest - shifted_logits.mul_(p).sum(-1) / total
    return logprobs, entropy, torch.linalg.vector_norm(p, dim=-1).square(), p


class _ChunkedHead(torch.autograd.Function):
    """The output head and its scores, chunk by chunk; what the gradient needs is made in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float, chunk: int, keeps_entropy: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        keeps = len(hidden) <= chunk and 4 * len(hidden) * len(weight) <= MAX_SAVED_BYTES
        has_gradient, probabilities = ctx.needs_input_grad[0], None
        scores, pulls, slopes = [], [], []
        for h, t in zip(hidden.split(chunk), targets.split(chunk), strict=True):
            *chunk_scores, p = _softmax_statistics(tempered_logits(h, weight, temperature), t)
            scores.append(chunk_scores)
            if keeps:
                probabilities = p
            elif has_gradient:
                with torch.autocast(hidden.device.type, enabled=False):
                    if keeps_entropy:
                        slopes.append(_entropy_slope(p, chunk_scores[1]).to(weight.dtype) @ weight)
                    # One is taken off before rounding, which would leave a nearly certain token no gradient.
                    p.scatter_add_(1, t[:, None], p.new_full((len(p), 1), -1))
                    pulls.append(p.to(weight.dtype) @ weight)
            del p  # before the next chunk
        logprobs, entropy, squares = (torch.cat(parts) for parts in zip(*scores, strict=True))
        vectors = (torch.cat(parts) if parts else None for parts in (pulls, slopes))
        ctx.save_for_backward(*((weight, targets, entropy, probabilities) if keeps else vectors))
        ctx.mark_non_differentiable(*([squares] if keeps_entropy else [entropy, squares]))
        ctx.keeps, ctx.temperature, ctx.dtype = keeps, temperature, hidden.dtype
        return logprobs, entropy, squares

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_logprobs: Tensor | None, grad_entropy: Tensor | None, _: None
    ) -> tuple[Tensor | None, ...]:
        # d log pi(o) / dz_i = 1[i = o] - p_i ;  dH / dz_i = -p_i (log p_i + H); both over T
        inner = [None if part is None else -part[:, None] / ctx.temperature for part in (grad_logprobs, grad_entropy)]
        if ctx.keeps:
            weight, targets, entropy, p = ctx.saved_tensors
            total = torch.zeros_like(entropy)[:, None] if inner[0] is None else inner[0]
            factors = total
            if inner[1] is not None:
                log_p = p.clamp(min=torch.finfo(p.dtype).tiny).log_()
                factors = factors + inner[1] * (log_p + entropy[:, None])
            gradient = p.clone().mul_(factors).scatter_add_(1, targets[:, None], -total).to(weight.dtype) @ weight
        else:
            products = [
                part * vector for part, vector in zip(inner, ctx.saved_tensors, strict=True) if part is not None
            ]
            gradient = products[0] if len(products) == 1 else products[0] + products[1]
        return gradient.to(ctx.dtype), None, None, None, None, None


def _entropy_slope(p: Tensor, entropy: Tensor) -> Tensor:
    r"""Return :math:`p (\log p + H)`; where p is zero, so is the slope."""
    return p.clamp(min=torch.finfo(p.dtype).tiny).log_().add_(entropy[:, None]).mul_(p)


def scores_from_hidden(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    temperature: float = 1.0,
    chunk: int | None = None,
    *,
    keeps_entropy: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Score ``targets`` under ``softmax(hidden @ weight.T / temperature)`` without ever holding all logits.

    Log-probability and entropy are differentiable with respect to the hidden states. The vectors that the backward pass
    scales, :math:`(p - 1[o]) W` and :math:`p\,(\log p + H)\,W`, are made while the logits are there, so that no logits
    are computed twice; the probabilities of a single small chunk are kept instead.

    Args:
        hidden: Last hidden states, shape ``(N, D)``.
        weight: Output embedding, frozen, shape ``(V, D)``.
        targets: Token ids, shape ``(N,)``.
        temperature: Temperature T by which logits are divided.
        chunk: Positions whose logits exist at one time; see :func:`choose_chunk` if None. It changes memory, and
            results by rounding only.
        keeps_entropy: Whether the entropy has a gradient; it takes one product more.

    Returns:
        Log-probability of the targets and Shannon entropy in nats, and the sum of squared probabilities, each float32,
        shape ``(N,)``.

    Raises:
        ValueError: the output embedding learns.

    """
    if weight.requires_grad:
        raise ValueError(
            "scores_from_hidden expects a frozen output embedding: detach it, its gradient is not computed."
        )
    chunk = chunk or choose_chunk(weight)
    return _ChunkedHead.apply(hidden, weight, targets, temperature, chunk, keeps_entropy)  # pyright: ignore[reportReturnType]


def choose_chunk(weight: Tensor) -> int:
    """Return the number of positions whose logits exist at one time.

    Args:
        weight: Output embedding, shape ``(V, D)``.

    """
    kind = "cpu" if weight.device.type == "cpu" else "cuda"
    return max(1, LOGIT_CHUNK_BYTES[kind] // (4 * len(weight)))
