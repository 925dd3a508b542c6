"""Environments that are locked, and do what none should."""

import os
import sys
import time

from rlcredit.episodes.environment import Environment, Turn


class Locked(Environment):
    """Sums what actions say; some actions make it misbehave."""

    locked = True
    is_graded = True

    def __init__(self, opening="begin"):
        self.opening = opening

    def reset(self, example):
        self.total = example.metadata["seed"]
        if self.opening == "raise":
            raise KeyError(example.text)
        return self.opening

    def step(self, action):
        if action == "sleep":
            time.sleep(60)
        if action == "spin":
            while True:
                pass
        if action == "exit":
            sys.exit(3)
        if action == "end":
            os._exit(3)
        if action == "open":
            open("/etc/passwd").close()
        if action == "fill":
            bytearray(2**33)
        if action == "long":
            return Turn("x" * 200_000)
        if action == "nothing":
            return None
        if action == "nan":
            return Turn("", float("nan"))
        self.total += int(action)
        return Turn(f"{self.total} é", self.total / 10, self.total > 9)


class Awaited(Locked):
    async def step(self, action):
        return Turn(action)


class Holding(Locked):
    """Holds what cannot be sent."""

    def __init__(self):
        super().__init__()
        self.rule = lambda: 7
