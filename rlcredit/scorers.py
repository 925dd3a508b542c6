"""Scorers of reasoning-gym; a module of its own so that the worker that imports it stays small."""

from collections.abc import Callable
from typing import Any


def scorer(name: str, config: dict[str, Any]) -> Callable[[str, dict[str, Any]], float | None]:
    """Return the scorer of a data set; None where it raises.

    Some of reasoning-gym's scorers evaluate the answer as an expression. They run in a worker, with a time and a memory
    limit, but not in a sandbox: do not give them the answers of people you do not trust.
    """
    import reasoning_gym  # noqa: PLC0415

    source = reasoning_gym.create_dataset(name, size=1, seed=0, **config)

    def score(answer: str, entry: dict[str, Any]) -> float | None:
        try:
            return float(source.score_answer(answer, entry))
        except Exception:  # noqa: BLE001  (over a hundred scorers by other hands: an exception is not a wrong answer)
            return None

    return score
