"""Games of TextArena for one player."""

import contextlib
import importlib
import random
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


def import_text_arena() -> ModuleType:
    """Return the library of games, or say how to install it."""
    try:
        return importlib.import_module("textarena")
    except ImportError as error:
        raise ValueError(
            f"TextArena cannot be imported: {error}. Install it: pip install 'rlcredit[textarena]'."
        ) from None


class TextArena(Environment):
    """A game of TextArena for one player; the policy reads what is new since its last action.

    The game says what an episode has earned when it ends, mostly from 0 to 1; one that is cut earns 0. It draws from
    Python's global generator, which every episode has for itself.

    Args:
        name: Name of the game in TextArena. Games whose name ends with ``-train`` put brackets around an action that
            has none.

    Raises:
        ValueError: TextArena is not installed, or has no such game.

    """

    is_graded = True

    def __init__(self, name: str = "GuessTheNumber-v0") -> None:
        if name not in import_text_arena().envs.registration.ENV_REGISTRY:
            raise ValueError(f"TextArena has no game {name!r}. Name one that it has, as GuessTheNumber-v0.")
        self.name = name
        self.generator_state = random.Random(0).getstate()
        self.game: Any = None

    def reset(self, example: "Example") -> str:
        """Begin a game of the seed ``example.metadata["seed"]``."""
        with self._use_generator():
            self.game = import_text_arena().make(self.name)
            self.game.reset(num_players=1, seed=example.metadata["seed"])
        return self._read_news()

    def step(self, action: str) -> Turn:
        """Answer an action."""
        with self._use_generator():
            is_done, _ = self.game.step(action=action)
        return Turn(self._read_news(), self.game.state.rewards[0] if is_done else 0.0, is_done)

    def _read_news(self) -> str:
        """Return the messages of the game since the last action; its wrappers would repeat all of them."""
        news = self.game.state.get_current_player_observation()
        return "\n".join(text for sender, text, _ in news if sender < 0).strip()

    @contextlib.contextmanager
    def _use_generator(self) -> Iterator[None]:
        """Have the global generator be the episode's meanwhile."""
        outer_state = random.getstate()
        random.setstate(self.generator_state)
        try:
            yield
        finally:
            self.generator_state = random.getstate()
            random.setstate(outer_state)
