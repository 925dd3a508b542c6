"""How far two gradients of the same stack agree: what any other agreement is to be held against."""

import numpy as np
from torch import Tensor


def split_half_cosines(products: Tensor, draws: int, seed: int, resample: bool = True) -> np.ndarray:
    """Return cosines between the summed gradients of two disjoint halves of the prompts.

    Args:
        products: inner products of the prompts' gradients, shape ``(P, P)``.
        draws: random halvings.
        seed: of the halvings.
        resample: draw each half's prompts again with replacement (bootstrap), so that the spread is that over prompts
            and not over halvings alone. A prompt is never in both halves.

    Returns:
        Shape ``(draws,)``; zero where a half has no gradient.

    Example:
        >>> import torch
        >>> split_half_cosines(torch.ones(4, 4), draws=3, seed=0).tolist()  # all prompts say the same
        [1.0, 1.0, 1.0]

    """
    matrix, random = products.numpy(), np.random.default_rng(seed)
    half = len(matrix) // 2
    cosines = np.zeros(draws)
    for draw in range(draws):
        order = random.permutation(len(matrix))
        halves = [order[:half], order[half : 2 * half]]
        if resample:
            halves = [random.choice(each, half) for each in halves]
        counts = [np.bincount(each, minlength=len(matrix)) for each in halves]
        across, *within = (a @ matrix @ b for a, b in ((counts[0], counts[1]), *((c, c) for c in counts)))
        if min(within) > 0:
            cosines[draw] = across / np.sqrt(within[0] * within[1])
    return cosines


def signal_to_noise(products: Tensor) -> float:
    r"""Return the squared length of the expected gradient over the variance of the batch's.

    .. math:: \frac{\mathbb{E}\, g_p \cdot g_q}{(\mathbb{E} |g_p|^2 - \mathbb{E}\, g_p \cdot g_q) / P}, \qquad p \ne q

    The numerator is unbiased, and so may be negative where there is little signal.

    Args:
        products: inner products of the prompts' gradients, shape ``(P, P)``, P at least two.

    Example:
        >>> import torch
        >>> signal_to_noise(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        2.0

    """
    prompts = len(products)
    own = float(products.diagonal().mean())
    signal = float((products.sum() - products.diagonal().sum()) / (prompts * (prompts - 1)))
    return prompts * signal / (own - signal) if own > signal else 0.0


def full_batch(cosine: float) -> float:
    """Return the cosine that two independent whole batches would have, if two halves have this one (Spearman-Brown).

    Example:
        >>> round(full_batch(0.5), 4)
        0.6667

    """
    return 2 * cosine / (1 + cosine) if cosine > -1 else -1.0
