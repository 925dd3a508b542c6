"""Requests in progress: which worker has which, how long each may take, and what they have cost."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rlcredit.verification.workers import JudgeWorker, RequestTimeoutError, StalledWorkerError, WorkerError

NORMAL = 0.1
"""Seconds that any request may take, whatever the others of its batch have cost."""


class PendingRequest:
    """A request in progress: its place in the batch, and how many workers have failed or stood still over it."""

    def __init__(self, place: int, request: tuple[Any, ...]) -> None:
        self.place = place
        self.request = request
        self.failures = 0
        self.delays = 0


class RequestBatch:
    """The cases of some requests, and their answers so far.

    All are asked in rounds. In a round each may take the same time: its share of what is left of the budget, at least
    :data:`NORMAL` and at most the timeout. What is not done by then is asked again in the next round, in which fewer
    share what is left, as long as that gives each more time. So the quick never wait for the slow, and in which order
    they come changes nothing.

    A request that breaks a worker is asked once more, after all others. If it breaks a second worker, the request is at
    fault, and its answer is 0. A worker that stood still (the system stopped it, or gave it no processor) says nothing
    about the request: after two of them there is no answer.

    Args:
        requests: arguments of what answers them.
        timeout: seconds that one may take at most.
        budget: seconds that all may take together, beyond :data:`NORMAL` each.

    """

    def __init__(self, requests: Sequence[tuple[Any, ...]], timeout: float, budget: float) -> None:
        self.answers: list[float | None] = [None] * len(requests)
        self.waiting = deque(PendingRequest(place, request) for place, request in enumerate(requests))
        self.asked: dict[JudgeWorker, PendingRequest] = {}
        self.late: list[PendingRequest] = []
        self.timeout = timeout
        self.left = budget
        self.limit = self._share_budget(len(requests))
        self.begun: float | None = None

    def advance_round(self) -> bool:
        """Whether a case has no answer and can still get one; begin the next round where it is time for it."""
        if (
            not (self.waiting or self.asked)
            and self.late
            and (share := self._share_budget(len(self.late))) > self.limit
        ):
            self.limit = share
            self.waiting.extend(sorted(self.late, key=lambda case: case.place))
            self.late = []
        return bool(self.waiting or self.asked)

    def _share_budget(self, cases: int) -> float:
        return min(self.timeout, max(NORMAL, self.left / max(1, cases)))

    def assign_next(self, worker: JudgeWorker) -> None:
        """Give a worker the next case."""
        self.begun = self.begun or time.monotonic()
        self.asked[worker] = case = self.waiting.popleft()
        worker.send_request(*case.request, limit=self.limit, patience=self.timeout)

    def record_answer(self, worker: JudgeWorker, answer: float | None) -> None:
        """Note the answer of a worker."""
        self.answers[self._take_request(worker).place] = answer

    def requeue_or_decide(self, worker: JudgeWorker, failure: WorkerError) -> None:
        """Queue the case of a worker that has given none again, or decide its answer."""
        case = self._take_request(worker)
        if isinstance(failure, RequestTimeoutError):
            self.late.append(case)
        elif isinstance(failure, StalledWorkerError):
            self.left -= worker.still
            case.delays += 1
            if case.delays <= 1 and self.left > 0:
                self.waiting.append(case)
        else:
            case.failures += 1
            if case.failures > 1:
                self.answers[case.place] = 0.0
            else:
                self.waiting.append(case)

    def _take_request(self, worker: JudgeWorker) -> PendingRequest:
        """Take the case away from a worker, and charge its time to the budget."""
        self.left -= max(0.0, worker.measure_used_seconds() - NORMAL)
        return self.asked.pop(worker)

    def measure_duration(self) -> float:
        """Return the seconds since the first case was asked."""
        return time.monotonic() - self.begun if self.begun else 0.0
