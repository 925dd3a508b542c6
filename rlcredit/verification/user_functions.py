"""Verifiers and reward functions of one's own, as the trainer knows them: tried once, then asked in a process."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rlcredit.base.exit_status import RunStopped
from rlcredit.base.messages import warn_once
from rlcredit.config.module_source import is_standard_library, locate_module
from rlcredit.verification.fault_attribution import UserCall, judge_calls
from rlcredit.verification.user_judge import CONCURRENT_CALLS, make_user_judge
from rlcredit.verification.verifiers import require_sandbox
from rlcredit.verification.worker_pool import WorkerPool
from rlcredit.verification.worker_replies import Outcome, Reply
from rlcredit.verification.workers import UnmadeJudgeError

LOCKED_SECONDS, UNLOCKED_SECONDS = 3.0, 20.0
"""Seconds that a call may take, computing or asleep in a locked process, by the clock in one that is not."""

START_SECONDS = 20.0
"""Seconds that importing a function may compute or sleep; as many as a call where those are more."""


def require_user_path(setting: str, path: str, signature: str, example: str) -> None:
    """Refuse a text that is no dotted path of a user's function.

    Args:
        setting: Setting that holds the path.
        path: Text in question.
        signature: How such a function is called.
        example: Example of a path, and where it leads.

    Raises:
        ValueError: it is no dotted path, or names something of Python's own.

    """
    if path.endswith(".py"):
        raise ValueError(f"{setting}: {path} is a Python file. Name a function in it, as {Path(path).stem}.NAME.")
    if "." not in path or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError(
            f"{setting}: {path!r} is not a dotted path. Name a function {signature}, for example {example}."
        )
    if is_standard_library(path):
        raise ValueError(f"{setting}: {path} is part of Python and not a {setting.rpartition('.')[2].rstrip('s')}.")


MADE_UP_COMPLETIONS = (
    "",
    "I do not know.",
    "Let us think step by step. First of all, the question asks for one thing.",
)
"""Completions that functions are tried with, of unequal length, beside a reference or in its place."""

NO_REPLY = Reply((), "the machine gives it no processor")


class UserFunction:
    """A function of a user's, asked in processes of its own about completions of prompts.

    Args:
        setting: Setting that names it.
        path: Dotted path of the function or class, in the working directory or wherever Python finds it.
        locked: Whether its processes are locked, for functions that evaluate what completions say.
        seconds: Seconds that a call may take; :data:`LOCKED_SECONDS` or :data:`UNLOCKED_SECONDS` if None.
        budget: Seconds that a batch may lose to slow completions in locked processes; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to ask it even where the system cannot lock the process that does.
        consequence: What follows for a completion on which it fails, for the warning.

    Raises:
        ValueError: the system cannot lock a process, or the seconds are not positive.

    """

    def __init__(
        self,
        setting: str,
        path: str,
        locked: bool,
        seconds: float | None,
        budget: float,
        unsafe: bool,
        consequence: str,
    ) -> None:
        if locked:
            require_sandbox(f"{setting}: {path}", unsafe)
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"{setting}: {path} has {seconds} seconds, expected a positive number.")
        self.setting, self.path, self.locked, self.folder = setting, path, locked, str(Path.cwd())
        self.seconds = seconds or (LOCKED_SECONDS if locked else UNLOCKED_SECONDS)
        self.budget = budget if locked else math.inf
        self.consequence = consequence
        self.pool: WorkerPool | None = None
        self.is_asynchronous = False
        self.faults: Counter[str] = Counter()

    @property
    def file(self) -> Path | None:
        """File of the function's module, found without importing it; None if there is none."""
        own_file = Path(self.folder, *self.path.split(".")[:-1]).with_suffix(".py")
        if own_file.is_file():
            return own_file
        spec, _ = locate_module(self.path)
        return Path(spec.origin) if spec and spec.origin else None

    def start(self, trial: Sequence[UserCall]) -> None:
        """Start its processes and try it once, under the limits that judging has; later calls do nothing.

        Args:
            trial: Calls that it is tried with; the first completion of each is the reference, if there is one.

        Raises:
            ValueError: with what is wrong with it.

        """
        if self.pool is not None:
            return
        self.pool = WorkerPool(
            *(make_user_judge, self.path, self.folder, self.seconds, self.locked, trial),
            timeout=self.seconds,
            budget=self.budget,
            locked=self.locked,
            start_seconds=max(START_SECONDS, self.seconds),
            count=len,
        )
        try:
            self.is_asynchronous = self.pool.is_asynchronous()
        except UnmadeJudgeError as error:
            self._refuse(f"it cannot be used: {error}")
        self.pool.concurrent = CONCURRENT_CALLS if self.is_asynchronous else 1
        trial_replies = [self._try_call(call) for call in trial]
        if all(value is None for reply in trial_replies for value in reply.values):
            self._warn(Reply((), "it returned None for all completions that it was tried with"))
        if crowd := self.pool.find_crowd():
            self._refuse(crowd)

    def _try_call(self, call: UserCall) -> Reply:
        """Refuse what breaks, what returns no answer, and what raises with the reference or with everything."""
        (reply,) = self._ask([call])
        if reply is None or reply.outcome is Outcome.ANSWERED:
            self._warn(reply or NO_REPLY)
            return reply or NO_REPLY
        judgement = reply
        if reply.outcome is Outcome.RAISED:
            (judgement,) = judge_calls([call], self._ask)
        is_bad = [value is not None and not math.isfinite(value) for value in judgement.values] or [True]
        if is_bad[0] if call.reference else all(is_bad):
            self._refuse(f"{call.describe()}, {reply.fault}. Have it judge every text, its own answer first of all")
        return judgement

    def _refuse(self, complaint: str) -> NoReturn:
        if self.pool is not None:
            self.pool.stop_workers()
        self.pool = None
        raise ValueError(f"{self.setting}: {self.path}: {complaint}.")

    def judge(self, calls: Sequence[UserCall]) -> list[Reply]:
        """Return a value for each completion of each call; see :func:`~.fault_attribution.judge_calls`.

        Raises:
            RunStopped: the function can no longer be imported.

        """
        try:
            judgements = judge_calls(calls, self._ask)
        except UnmadeJudgeError as error:
            raise RunStopped(f"{self.setting}: {self.path}: it can no longer be used: {error}.") from None
        for reply in judgements:
            self._warn(reply)
        return judgements

    def _ask(self, calls: Sequence[UserCall]) -> list[Reply | None]:
        """Ask calls: all at a time if they can wait for each other, and what that gives no reply once more, alone."""
        assert self.pool is not None
        if not self.is_asynchronous or len(calls) < 2:
            return [reply for (reply,) in self.pool.ask_requests([([call],) for call in calls])]
        (replies,) = self.pool.ask_requests([(calls,)])
        missing = [place for place, reply in enumerate(replies) if reply is None]
        new_replies = self.pool.ask_requests([([calls[place]],) for place in missing])
        for place, (reply,) in zip(missing, new_replies, strict=True):
            replies[place] = reply
        return replies

    def _warn(self, reply: Reply) -> None:
        """Report completions that break a function, and its own faults: the first time, the tenth, and so on."""
        if not reply.fault:
            return
        follows = self.consequence if reply.outcome is Outcome.RAISED else "Such completions are not judged"
        self.faults[follows] += 1
        times = 10 ** (len(str(self.faults[follows])) - 1)
        again = f" This has happened {times:,} times." if times > 1 else ""
        sentence = f"{self.setting}: {self.path}: {reply.fault}. {follows}.{again}"
        warn_once(sentence, f"{self.path} {self.folder} {follows}{again}")
