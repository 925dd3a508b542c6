"""The watchdog of a run's processes: if one is killed or hangs, all end with a message and a status."""

import re
import threading
import time
from typing import Any

import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer

from rlcredit.base.exit_status import ProcessLost
from rlcredit.base.lightning_private import replace_end_of_failed_run
from rlcredit.base.messages import print_message
from rlcredit.base.process_end import end_process
from rlcredit.formulas.distributed import has_other_processes, rank_and_world_size

SILENCE_SECONDS = 60.0
"""Seconds without a sign of life after which a process counts as lost; a stopped one gives none, a busy one does."""

HEARTBEAT_INTERVAL = 2.0
"""Seconds between two signs."""

_LOST_PEER = re.compile(r"gloo|nccl|connection (closed|reset|refused)|broken pipe|socket", re.IGNORECASE)
"""In the text of an error that an exchange with a lost process raises."""

_CONTINUE_ADVICE = (
    "Its own message, if there is one, says why. To go on from the last checkpoint, or anew if there is none: the same "
    "command with --ckpt_path auto."
)


EXIT_SECONDS = 20.0
"""Seconds in which the first process may find out by itself that one it has started has ended."""


def end_failed_run(children: list[Any]) -> None:
    """End a run after one of its processes has failed.

    Args:
        children: Processes that this one has started.

    """
    time.sleep(EXIT_SECONDS)  # an exchange that fails meanwhile names the step
    for child in children:
        child.kill()
    print_message(f"error: Another process of this run has ended. {_CONTINUE_ADVICE}")
    end_process(ProcessLost.status)


class ProcessWatchdog(Callback):
    """Watch the other processes of a run; a run with one process has none.

    Each process writes a number that grows into the store by which they have found each other, and reads those of the
    others, in a thread, so that neither a long step nor a long evaluation is taken for the end of one.
    """

    def __init__(self) -> None:
        self.watch: Heartbeat | None = None
        replace_end_of_failed_run(end_failed_run)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Start watching."""
        if has_other_processes() and self.watch is None:
            self.watch = Heartbeat(*rank_and_world_size())

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Tell the other processes that no further heartbeat will follow."""
        if self.watch is not None:
            self.watch.stop()
            self.watch = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Turn the error of a failed exchange into a message.

        Raises:
            ProcessLost: another process has ended.

        """
        if self.watch is not None and isinstance(exception, RuntimeError) and _LOST_PEER.search(str(exception)):
            self.watch.stop()
            message = f"Another process of this run has ended after step {trainer.global_step}. {_CONTINUE_ADVICE}"
            if trainer.global_rank:  # the first one says it at its end
                print_message(f"error: {message}")
            raise ProcessLost(message) from exception


class Heartbeat:
    """Heartbeats sent to the other processes and received from them, each in a thread of its own.

    Args:
        rank: Rank of this process.
        world: Number of processes.

    """

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.ended = threading.Event()
        self.heard = dict.fromkeys((peer for peer in range(world) if peer != rank), time.monotonic())
        store: Any = dist.distributed_c10d._get_default_store()
        self.store = store.clone()  # whoever waits in a store holds up all that use it
        for work in (self._beat, self._guard):
            threading.Thread(target=work, name="companions", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self.ended.set()

    def _beat(self) -> None:
        """Send heartbeats and read those of the others; this hangs if the process that keeps the store hangs."""
        signs: dict[int, bytes] = {}
        number = 0
        try:
            while not self.ended.wait(HEARTBEAT_INTERVAL):
                number += 1
                self.store.set(f"alive/{self.rank}", str(number))
                for peer in self.heard:
                    if not self.store.check([f"alive/{peer}"]):
                        continue
                    sign = self.store.get(f"alive/{peer}")
                    if signs.get(peer) != sign or sign == b"done":
                        signs[peer], self.heard[peer] = sign, time.monotonic()
            self.store.set(f"alive/{self.rank}", "done")
        except RuntimeError:
            return  # the store is gone, with the process that kept it: nothing more is heard

    def _guard(self) -> None:
        """End this process when another has been silent for too long: the exchange that it waits in never ends."""
        while not self.ended.wait(1.0):
            for peer, heard in self.heard.items():
                if time.monotonic() - heard > SILENCE_SECONDS:
                    problem = f"Process {peer} of this run has given no sign for {SILENCE_SECONDS:.0f} s."
                    print_message(f"error: {problem} {_CONTINUE_ADVICE}")
                    end_process(ProcessLost.status)
