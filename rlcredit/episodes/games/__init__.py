"""Environments of a few lines that make their own questions, each from a seed.

Importing the package imports all of them, so that a configuration can say ``environment: Corridor(rho=0.25)``.
"""

from rlcredit.episodes.games.bisection import Bisection
from rlcredit.episodes.games.calculator import Calculator
from rlcredit.episodes.games.corridor import Corridor
from rlcredit.episodes.games.frozen_lake import FrozenLake
from rlcredit.episodes.games.mastermind import Mastermind
from rlcredit.episodes.games.running_sum import RunningSum

__all__ = ["Bisection", "Calculator", "Corridor", "FrozenLake", "Mastermind", "RunningSum"]
