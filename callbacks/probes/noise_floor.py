"""How far two gradients of the same stack agree: the noise level for every other cosine."""

from collections.abc import Mapping

import numpy as np
from lightning.pytorch import Trainer
from torch import Tensor

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gradient_vectors import gram_matrix
from rlcredit.training.credit_gradients import compute_prompt_gradients
from rlcredit.training.module import PolicyModule
from rlcredit.training.periodic_measurement import PeriodicMeasurement


def split_half_cosines(products: Tensor, draws: int, seed: int, resample: bool = True) -> np.ndarray:
    """Return cosines between the summed gradients of two disjoint halves of the prompts.

    Args:
        products: Inner products of the prompts' gradients, shape ``(P, P)``.
        draws: Number of random halvings.
        seed: Seed of the random halvings.
        resample: Whether to draw each half's prompts again with replacement (bootstrap), so that the spread is that
            over prompts and not over halvings alone. A prompt is never in both halves.

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
            halves = [random.choice(prompts, half) for prompts in halves]
        counts = [np.bincount(prompts, minlength=len(matrix)) for prompts in halves]
        across, *inner_products = (a @ matrix @ b for a, b in ((counts[0], counts[1]), *((c, c) for c in counts)))
        if min(inner_products) > 0:
            cosines[draw] = across / np.sqrt(inner_products[0] * inner_products[1])
    return cosines


def signal_to_noise(products: Tensor) -> float:
    r"""Return the squared length of the expected gradient over the variance of the batch's.

    .. math:: \frac{\mathbb{E}\, g_p \cdot g_q}{(\mathbb{E} |g_p|^2 - \mathbb{E}\, g_p \cdot g_q) / P}, \qquad p \ne q

    The numerator is unbiased, and so may be negative where there is little signal.

    Args:
        products: Inner products of the prompts' gradients, shape ``(P, P)``, P at least two.

    Example:
        >>> import torch
        >>> signal_to_noise(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        2.0

    """
    prompts = len(products)
    squared_length = float(products.diagonal().mean())
    signal = float((products.sum() - products.diagonal().sum()) / (prompts * (prompts - 1)))
    return prompts * signal / (squared_length - signal) if squared_length > signal else 0.0


def full_batch_cosine(cosine: float) -> float:
    """Return the cosine that two independent whole batches would have, if two halves have this one (Spearman-Brown).

    Example:
        >>> round(full_batch_cosine(0.5), 4)
        0.6667

    """
    return 2 * cosine / (1 + cosine) if cosine > -1 else -1.0


class NoiseFloor(PeriodicMeasurement, CreditOperator, reads="advantages step", costly=True):
    """Log the cosine between the gradients of two disjoint halves of the prompts, under the stack above this place.

    ``half_cosine`` is the mean over random halvings, ``_low`` and ``_high`` the bootstrap interval over prompts that
    holds 95 %; ``full_cosine`` is what two independent whole batches would have. An operator whose angle is smaller
    than the floor's moves the update less than drawing other prompts does. ``signal_to_noise`` is the squared length of
    the expected gradient over the variance of this batch's. Each process uses its own prompts.

    Args:
        every_n_steps: Steps from one measurement to the next; each takes one forward and one backward pass over every
            prompt's completions.
        draws: Number of halvings, and of bootstrap samples.

    """

    def __init__(self, every_n_steps: int = 10, draws: int = 1000) -> None:
        super().__init__()
        self.every_n_steps = self.require_interval(every_n_steps)
        if draws < 1:
            raise ValueError(f"NoiseFloor expects draws >= 1, got {draws}.")
        self.draws = draws

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Compare random halves of the prompts."""
        if len(rollout.mask) < 2 * rollout.group_size:
            raise ValueError(
                "NoiseFloor needs at least two prompts per process and mini-batch. "
                "Raise data.init_args.prompts_per_step, or lower model.minibatches."
            )
        products = gram_matrix(compute_prompt_gradients(trainer, module, rollout, credit))
        seed = self.run_seed + rollout.step
        half = float(split_half_cosines(products, self.draws, seed, resample=False).mean())
        low, high = np.quantile(split_half_cosines(products, self.draws, seed), [0.025, 0.975])
        return {
            "half_cosine": half,
            "half_cosine_low": float(low),
            "half_cosine_high": float(high),
            "full_cosine": full_batch_cosine(half),
            "signal_to_noise": signal_to_noise(products),
        }
