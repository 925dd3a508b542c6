"""Requests in progress: which worker has which, how long each may take, and what they have cost."""

import pickle
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rlcredit.base.messages import warn_once
from rlcredit.verification.fault_attribution import AT_FAULT
from rlcredit.verification.worker_process import Answer
from rlcredit.verification.workers import (
    JudgeWorker,
    RequestTimeoutError,
    StalledWorkerError,
    WorkerError,
    WorkerTemplate,
)

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
    """Requests to the workers, and their answers so far.

    All are asked in rounds. In a round each may take the same time: its share of what is left of the budget, at least
    :data:`NORMAL` and at most the timeout. What is not done by then is asked again in the next round, in which fewer
    share what is left, as long as that gives each more time. So the quick never wait for the slow, and in which order
    they come changes nothing.

    A request that breaks a worker is asked once more, after all others. If it breaks a second worker, the request is at
    fault, and its answer is 0. A worker that stood still (the system stopped it, or gave it no processor) says nothing
    about the request: after two of them there is no answer.

    Args:
        requests: Arguments of each request.
        timeout: Seconds that one request may take at most.
        budget: Seconds that all requests may take together, beyond :data:`NORMAL` each.
        count: Function from the arguments of a request to the number of its answers, which are then a list, all
            :data:`~rlcredit.verification.fault_attribution.AT_FAULT` if the request is; one answer each if None.

    """

    def __init__(
        self,
        requests: Sequence[tuple[Any, ...]],
        timeout: float,
        budget: float,
        count: Callable[..., int] | None = None,
    ) -> None:
        self.count = count
        self.answers: list[Any] = [None] * len(requests)
        self.waiting = deque(PendingRequest(place, request) for place, request in enumerate(requests))
        self.asked: dict[JudgeWorker, PendingRequest] = {}
        self.late: list[PendingRequest] = []
        self.timeout = timeout
        self.left = budget
        self.limit = self._share_budget(len(requests))
        self.begun: float | None = None

    def advance_round(self) -> bool:
        """Whether a request has no answer and can still get one; begin the next round if the last one is over."""
        if (
            not (self.waiting or self.asked)
            and self.late
            and (share := self._share_budget(len(self.late))) > self.limit
        ):
            self.limit = share
            self.waiting.extend(sorted(self.late, key=lambda pending: pending.place))
            self.late = []
        return bool(self.waiting or self.asked)

    def _share_budget(self, requests: int) -> float:
        return min(self.timeout, max(NORMAL, self.left / max(1, requests)))

    def assign_next(self, worker: JudgeWorker) -> None:
        """Give a worker the next request."""
        self.begun = self.begun or time.monotonic()
        self.asked[worker] = pending = self.waiting.popleft()
        answers = self.count(*pending.request) if self.count else 1
        worker.send_request(*pending.request, limit=self.limit, patience=self.timeout, answers=answers)

    def record_answers(self, worker: JudgeWorker, answers: list[float | None]) -> None:
        """Record what a worker has answered."""
        self.answers[self._take_request(worker).place] = answers if self.count else answers[0]

    def blame_request(self, pending: PendingRequest) -> None:
        """Record that a request is itself at fault."""
        self.answers[pending.place] = [AT_FAULT] * self.count(*pending.request) if self.count else 0.0

    def requeue_or_decide(self, worker: JudgeWorker, failure: WorkerError) -> None:
        """Queue the request of a worker that has failed again, or decide its answer."""
        pending = self._take_request(worker)
        if isinstance(failure, RequestTimeoutError):
            self.late.append(pending)
        elif isinstance(failure, StalledWorkerError):
            self.left -= worker.still
            pending.delays += 1
            if pending.delays <= 1 and self.left > 0:
                self.waiting.append(pending)
        else:
            pending.failures += 1
            if pending.failures > 1:
                self.blame_request(pending)
            else:
                self.waiting.append(pending)

    def _take_request(self, worker: JudgeWorker) -> PendingRequest:
        """Take the request from a worker, and charge its time to the budget."""
        self.left -= max(0.0, worker.measure_used_seconds() - NORMAL)
        return self.asked.pop(worker)

    def measure_duration(self) -> float:
        """Return the seconds since the first request was sent."""
        return time.monotonic() - self.begun if self.begun else 0.0


SIZE = 3
"""Workers, once a batch takes long: two that answer and one in reserve."""

HELP_AFTER = 0.5
"""Seconds after which a batch gets a second worker; the short batches of most tasks never need one."""

_TICK = 0.05

Request = tuple[Any, ...]
"""Arguments of what answers."""


def build_no_requests(*_: Any) -> Sequence[Request]:
    """Return no request for the reference alone: a request that runs out of time is itself at fault."""
    return ()


class WorkerPool:
    """Answers to batches of requests, by workers that are replaced when they break.

    Args:
        make: Function that makes a judge, see :class:`~rlcredit.verification.workers.WorkerTemplate`.
        arguments: Arguments of ``make``.
        timeout: Seconds that one request may compute or sleep.
        budget: Seconds that the requests of a batch may compute or sleep together, beyond a tenth of a second each; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        alone: Function that returns requests about the reference of a request that has run out of time, the reference
            in front. If one of them runs out of it too, the reference is to blame and the answer is None; it is 0
            otherwise.
        count: Function from the arguments of a request to the number of its answers; see :class:`RequestBatch`.

    """

    def __init__(
        self,
        make: Callable[..., Callable[..., Answer]],
        *arguments: Any,
        timeout: float = 3.0,
        budget: float = 10.0,
        alone: Callable[..., Sequence[Request]] = build_no_requests,
        count: Callable[..., int] | None = None,
    ) -> None:
        self.make = make
        self.arguments = arguments
        self.timeout = timeout
        self.budget = budget
        self.alone = alone
        self.count = count
        self.template: WorkerTemplate | None = None
        self.workers: list[JudgeWorker] = []
        self.wanted = 1
        self.unstarted = 0

    def start_workers(self) -> None:
        """Start the workers that are missing, in the background."""
        if self.template is None or self.template.has_ended():
            self.template = WorkerTemplate(self.make, *self.arguments)
        while len(self.workers) < self.wanted:
            self.workers.append(JudgeWorker(self.template))

    def answer_requests(self, requests: Sequence[Request]) -> list[Any]:
        """Return an answer to each request, in order; None if it could not be judged."""
        batch = self._ask_batch(RequestBatch(requests, self.timeout, self.budget, self.count))
        if batch.late:
            self._decide_timed_out(batch)
        return batch.answers

    def _ask_batch(self, batch: RequestBatch) -> RequestBatch:
        while batch.advance_round():
            self.start_workers()
            self._assign_requests(batch)
            self._wait_for_answers()
            for worker in [worker for worker in self.workers if worker.busy]:
                self._take_answer(worker, batch)
            if batch.measure_duration() > HELP_AFTER:
                self.wanted = SIZE
        if batch.answers:
            self.start_workers()  # before the next batch needs them
        return batch

    def _decide_timed_out(self, batch: RequestBatch) -> None:
        """Decide requests that ran out of time: wrong, unless the reference alone needs as long."""
        alone = [{pickle.dumps(request): request for request in self.alone(*pending.request)} for pending in batch.late]
        distinct = {key: request for requests in alone for key, request in requests.items()}
        asked = self._ask_batch(
            RequestBatch(list(distinct.values()), batch.limit, batch.limit * len(distinct), self.count)
        )
        known = dict(zip(distinct, asked.answers, strict=True))
        for pending, requests in zip(batch.late, alone, strict=True):
            if all(known[key] is not None for key in requests):
                batch.blame_request(pending)
            elif batch.limit == self.timeout:
                reference = next(iter(requests.values()))[0]
                warn_once(
                    f"to judge an answer can take longer than {self.timeout:g} s where the reference is "
                    f"{str(reference)!r:.200}. Answers that do are not judged; leave the question out."
                )

    def _assign_requests(self, batch: RequestBatch) -> None:
        idle = [worker for worker in self.workers if not worker.busy]
        for worker in idle:
            if not worker.is_silent():
                self._dismiss_worker(worker)
            elif batch.waiting and len(batch.asked) < SIZE - 1:
                batch.assign_next(worker)

    def _wait_for_answers(self) -> None:
        poll = select.poll()
        for worker in self.workers:
            poll.register(worker.socket, (select.POLLIN * worker.busy) | (select.POLLOUT * bool(worker.unsent)))
        poll.poll(1000 * _TICK)

    def _take_answer(self, worker: JudgeWorker, batch: RequestBatch) -> None:
        """Record what a worker has answered, if anything, and replace a worker that cannot answer."""
        try:
            answers = worker.receive_answers()
        except WorkerError as failure:
            if worker in batch.asked:
                batch.requeue_or_decide(worker, failure)
            else:
                self._count_unstarted(worker)
            self._dismiss_worker(worker)
            return
        if answers and worker in batch.asked:
            batch.record_answers(worker, answers)
        self.unstarted *= not answers

    def _count_unstarted(self, worker: JudgeWorker) -> None:
        self.unstarted += worker.template is self.template  # several workers may fail with one template
        self.template = None
        if self.unstarted > 1:
            raise RuntimeError(
                f"The process of {self.make.__module__}.{self.make.__name__} ended before it was ready, twice. What it "
                "wrote to standard error says why; or memory, or the number of processes, is limited here."
            )

    def _dismiss_worker(self, worker: JudgeWorker) -> None:
        self.workers.remove(worker)
        worker.stop()
