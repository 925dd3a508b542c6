"""The agreement of two gradients of one and the same stack: the floor under every other cosine."""

from collections.abc import Mapping

import numpy as np
from lightning.pytorch import Trainer
from torch import Tensor

from callbacks.base import CreditOperator
from callbacks.measurement import Measurement
from rlcredit.functional.directions import gram
from rlcredit.functional.noise_floor import full_batch, signal_to_noise, split_half_cosines
from rlcredit.gradients import prompt_gradients
from rlcredit.module import PolicyModule
from rlcredit.rollout import Rollout


class NoiseFloor(Measurement, CreditOperator, reads="advantages step", costly=True):
    """Log the cosine between the gradients of two disjoint halves of the prompts, under the stack above this place.

    ``half_cosine`` is the mean over random halvings, ``_low`` and ``_high`` the bootstrap interval over prompts that
    holds 95 %; ``full_cosine`` is what two independent whole batches would have. An operator whose angle is smaller
    than the floor's moves the update less than drawing other prompts does. ``signal_to_noise`` is the squared length of
    the expected gradient over the variance of this batch's. Of each process its own prompts.

    Args:
        every_n_steps: how often; one forward and one backward pass over every prompt's completions each time.
        draws: halvings, and bootstrap samples.

    """

    def __init__(self, every_n_steps: int = 10, draws: int = 1000) -> None:
        super().__init__()
        self.every_n_steps = self.every(every_n_steps)
        if draws < 1:
            raise ValueError(f"NoiseFloor expects draws >= 1, got {draws}.")
        self.draws = draws

    def measure(
        self, trainer: Trainer, module: PolicyModule, rollout: Rollout, advantages: Tensor
    ) -> Mapping[str, float]:
        """Halve the prompts, again and again."""
        if len(rollout.mask) < 2 * rollout.group_size:
            raise ValueError(
                "NoiseFloor needs at least two prompts per process and mini-batch. "
                "Raise data.prompts_per_step, or lower model.minibatches."
            )
        products = gram(prompt_gradients(trainer, module, rollout, advantages))
        seed = self.run_seed + rollout.step
        half = float(split_half_cosines(products, self.draws, seed, resample=False).mean())
        low, high = np.quantile(split_half_cosines(products, self.draws, seed), [0.025, 0.975])
        return {
            "half_cosine": half,
            "half_cosine_low": float(low),
            "half_cosine_high": float(high),
            "full_cosine": full_batch(half),
            "signal_to_noise": signal_to_noise(products),
        }
