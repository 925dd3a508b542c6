"""An environment that kills its process in the middle of an episode, once, where a file asks for it."""

import os
import signal
from pathlib import Path

from tests.rlcredit.episodes.counting import Counting

STATUS = Path("runs", "episodes-seed0", "status.json")


class FusedCounting(Counting):
    def step(self, action):
        fuse = Path("fuse")
        if self.turn == 1 and fuse.exists() and STATUS.exists() and '"step": 3' in STATUS.read_text():
            fuse.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)
