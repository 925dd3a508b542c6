"""Small environments that tests act on."""

import asyncio
import random

from rlcredit.episodes.environment import Environment, Turn


class Counting(Environment):
    """Asks for a digit a turn; every digit that is said earns its share."""

    is_graded = True

    def __init__(self, length=3):
        self.length = length

    def reset(self, example):
        self.rng, self.turn = random.Random(example.metadata["seed"]), 0
        self.digit = str(self.rng.randrange(10))
        return f"say {self.digit}"

    def step(self, action):
        self.turn += 1
        reward = (self.digit in action) / self.length
        self.digit = str(self.rng.randrange(10))
        return Turn(f"say {self.digit}", reward, self.turn == self.length)


class SlowCounting(Counting):
    """The same, awaited; ``together`` is the most that were awaited at a time."""

    waiting, together = 0, 0

    async def step(self, action):
        SlowCounting.waiting += 1
        SlowCounting.together = max(SlowCounting.together, SlowCounting.waiting)
        await asyncio.sleep(0.01)
        SlowCounting.waiting -= 1
        return super().step(action)


class LockedCounting(Counting):
    """The same, in locked processes."""

    locked = True


class Silent(Environment):
    """Says nothing, gives no reward, and never ends."""

    def reset(self, example):
        return "speak"

    def step(self, action):
        return Turn()


class Failing(Counting):
    """Fails in the second turn of every other episode."""

    def step(self, action):
        if self.turn == 1 and int(self.digit) % 2:
            raise ConnectionError("the table is closed")
        return super().step(action)


class Forgetful(Counting):
    """Counts over episodes."""

    played = 0

    def reset(self, example):
        Forgetful.played += 1
        return f"{super().reset(example)}, game {self.played}"
