"""The order of prompts: a pure function of seed and step."""

from collections.abc import Callable, Iterator

import numpy as np
from torch.utils.data import Sampler


class PromptOrder(Sampler[list[int]]):
    """Batches of prompt numbers, shuffled anew in every epoch, continued at the step the trainer has reached.

    Nothing is stored: a resumed run asks for the batch of ``step`` and gets what an uninterrupted run would have got.
    A batch never crosses the end of an epoch, so no prompt occurs in it twice; prompts that fill no batch wait
    for the next shuffle.

    Args:
        size: Number of prompts.
        batch: Prompts per step over all processes, at most ``size``.
        seed: Seed of the run.
        step: Function that returns the number of steps taken before; called when an iteration begins.
        repeats: Number of consecutive steps that get the same batch.
        rank: Rank of this process; it gets every ``world``-th prompt of a batch.
        world: Number of processes; divides ``batch``.

    Raises:
        ValueError: the batch is larger than the data or does not divide among the processes.

    Example:
        >>> order = PromptOrder(size=6, batch=2, seed=0, step=lambda: 4)
        >>> len(order), len(list(order)), sorted(order.draw_numbers(0) + order.draw_numbers(1) + order.draw_numbers(2))
        (3, 2, [0, 1, 2, 3, 4, 5])

    """

    def __init__(
        self,
        size: int,
        batch: int,
        seed: int,
        step: Callable[[], int],
        *,
        repeats: int = 1,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if not 1 <= batch <= size:
            raise ValueError(
                f"data.init_args.prompts_per_step is {batch}, but there are {size} training prompts. Lower it."
            )
        if batch % world:
            raise ValueError(
                f"data.init_args.prompts_per_step is {batch}, which {world} processes cannot share evenly."
            )
        self.size, self.batch, self.seed, self.step, self.repeats = size, batch, seed, step, repeats
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        """Steps per epoch."""
        return self.size // self.batch * self.repeats

    def draw_numbers(self, step: int) -> list[int]:
        """Return this process's prompts of a step."""
        epoch, place = divmod(step // self.repeats, self.size // self.batch)
        bits = np.random.Philox(key=np.array([self.seed, epoch], dtype=np.uint64))
        order = np.random.Generator(bits).permutation(self.size)
        return order[place * self.batch : (place + 1) * self.batch][self.rank :: self.world].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the remaining batches of the current epoch."""
        start = self.step()
        return (self.draw_numbers(step) for step in range(start, (start // len(self) + 1) * len(self)))
