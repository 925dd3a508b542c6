"""Episodes of an environment that makes its own questions, one from each seed."""

from typing import Any

from rlcredit.episodes.environment import Environment
from rlcredit.episodes.episode_table import open_episode
from rlcredit.policy.chat_turns import Conversation
from rlcredit.tasks.example import Example, QuestionSets
from rlcredit.tasks.task import Task, require_positive

FIRST_HELD_OUT_SEED = 2**32
"""Seed of the first held-out episode; those of training lie below."""


class Episodes(Task):
    """Episodes of an environment; it begins each by a seed, ``example.metadata["seed"]``.

    Seeds of training are 0, 1, ...; held-out ones lie far above. An environment of few beginnings may begin a held-out
    episode as one of training.

    Args:
        environment: Environment, as in ``Corridor(rho=0.25)``.
        train_size: Number of training episodes.
        kwargs: Arguments of :class:`~rlcredit.tasks.task.Task`.

    """

    def __init__(self, environment: Environment, train_size: int = 4096, **kwargs: Any) -> None:
        super().__init__(environment=environment, **kwargs)
        require_positive("data.init_args.train_size", train_size)
        require_positive("data.init_args.validation_size", self.validation_size or 0)
        self.train_size = train_size

    @property
    def compares_answers(self) -> bool:
        """False: the environment judges."""
        return False

    @property
    def held_out_size(self) -> int:
        """Number of held-out episodes."""
        return self.validation_size or 0

    def examples(self) -> QuestionSets:
        """Return the first observations of all episodes."""
        return [self.begin_example(seed) for seed in range(self.train_size)], [
            self.begin_example(FIRST_HELD_OUT_SEED + number) for number in range(self.held_out_size)
        ]

    def find_question(self, example: Example) -> str | Conversation:
        """Return the first observation, as the example holds it."""
        return example.question

    def begin_example(self, seed: int) -> Example:
        """Return the example of a seed.

        Raises:
            ValueError: the environment does not begin.

        """
        assert self.prototype is not None
        episode = open_episode(self.prototype, Example("", "", {"seed": seed}))
        if episode.fault or not episode.opening:
            fault = episode.fault or f"{type(self.environment).__name__}.reset returned no text"
            raise ValueError(f"data.init_args.environment: {fault}. Episodes begin with what reset returns.")
        return Example(episode.opening, "", {"seed": seed})
