"""Requests in progress: which worker has which, how long each may take, and what they have cost."""

import math
import pickle
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rlcredit.base.messages import warn_once
from rlcredit.verification.process_tree import CROWD_FAULT, WATCH_INTERVAL, list_descendants
from rlcredit.verification.worker_process import WORKER_GRACE_SECONDS, Make
from rlcredit.verification.worker_replies import Outcome, Reply
from rlcredit.verification.workers import (
    START_TIMEOUT,
    JudgeWorker,
    RequestTimeoutError,
    StalledWorkerError,
    UnmadeJudgeError,
    WorkerError,
    WorkerTemplate,
)

NORMAL_SECONDS = 0.1
"""Seconds that any request may take, whatever the others of its batch have cost."""


Request = tuple[Any, ...]
"""Arguments of what answers."""


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
    :data:`NORMAL_SECONDS` and at most the timeout. What is not done by then is asked again in the next round, in which
    fewer share what is left, as long as that gives each more time. So the quick never wait for the slow, and in which
    order they come changes nothing.

    A request that breaks a worker is asked once more, after all others. If it breaks a
    second worker, the request is at fault, and so says its reply. A worker that stood still (the system stopped it, or
    gave it no processor) says nothing about the request: after two of them there is no reply. A request of several
    calls is asked once: what has no reply when it breaks or is late stays without.

    Args:
        requests: Arguments of each request.
        timeout: Seconds that one request may take at most.
        budget: Seconds that all requests may take together, beyond :data:`NORMAL_SECONDS` each.
        count: Function from the arguments of a request to the number of its calls.

    """

    def __init__(
        self, requests: Sequence[Request], timeout: float, budget: float, count: Callable[..., int] = lambda *_: 1
    ) -> None:
        self.counts = [count(*request) for request in requests]
        self.replies: list[list[Reply | None]] = [[None] * calls for calls in self.counts]
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
        return min(self.timeout, max(NORMAL_SECONDS, self.left / max(1, requests)))

    def assign_next(self, worker: JudgeWorker, concurrent: int) -> None:
        """Give a worker the next request.

        Args:
            worker: Worker that has nothing to do.
            concurrent: Calls of a request that it handles at a time.

        """
        self.begun = self.begun or time.monotonic()
        self.asked[worker] = pending = self.waiting.popleft()
        calls = self.counts[pending.place]
        limit = self.limit * math.ceil(calls / concurrent) + (WORKER_GRACE_SECONDS if concurrent > 1 else 0.0)
        worker.send_request(*pending.request, limit=limit, patience=max(limit, self.timeout), calls=calls)

    def record_replies(self, worker: JudgeWorker) -> None:
        """Record what a worker has replied."""
        self.replies[self._take_request(worker).place] = worker.replies

    def blame_request(self, pending: PendingRequest, fault: str) -> None:
        """Record that a request is itself at fault."""
        if self.counts[pending.place] == 1:
            self.replies[pending.place] = [Reply((), fault, Outcome.BROKEN)]

    def requeue_or_decide(self, worker: JudgeWorker, failure: WorkerError) -> None:
        """Queue the request of a worker that has failed again, or decide its answer."""
        pending = self._take_request(worker)
        self.replies[pending.place] = worker.replies
        if isinstance(failure, RequestTimeoutError):
            self.late.append(pending)
        elif isinstance(failure, StalledWorkerError):
            self.left -= worker.still
            pending.delays += 1
            if pending.delays <= 1 and self.left > 0:
                self.waiting.append(pending)
        else:
            pending.failures += 1
            if pending.failures > 1 or self.counts[pending.place] > 1:
                self.blame_request(pending, str(failure))
            else:
                self.waiting.append(pending)

    def _take_request(self, worker: JudgeWorker) -> PendingRequest:
        """Take the request from a worker, and charge its time to the budget."""
        self.left -= max(0.0, worker.measure_used_seconds() - NORMAL_SECONDS)
        return self.asked.pop(worker)

    def measure_duration(self) -> float:
        """Return the seconds since the first request was sent."""
        return time.monotonic() - self.begun if self.begun else 0.0


POOL_SIZE = 3
"""Workers, once a batch takes long: two that answer and one in reserve."""

HELP_AFTER = 0.5
"""Seconds after which a batch gets a second worker; the short batches of most tasks never need one."""

_TICK = 0.05


class WorkerPool:
    """Answers to batches of requests, by workers that are replaced when they break.

    Args:
        make: Function that makes a judge, see :class:`~rlcredit.verification.workers.WorkerTemplate`.
        arguments: Arguments of ``make``.
        timeout: Seconds that one call may compute or sleep.
        budget: Seconds that the requests of a batch may compute or sleep together, beyond a tenth of a second each; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        alone: Function that returns requests about the reference of a request that has run out of time, the reference
            in front. If one of them runs out of it too, the reference is to blame and the answer is None; it is 0
            otherwise, and where there is no such request.
        locked: Whether workers are locked. What is not locked has a single worker, and all that it has started ends
            with it.
        start_seconds: Seconds that the judge may compute or sleep while it is made.
        count: Function from the arguments of a request to the number of its calls; most are one.
        concurrent: Calls of a request that a worker handles at a time.

    """

    def __init__(
        self,
        make: Make,
        *arguments: Any,
        timeout: float = 3.0,
        budget: float = 10.0,
        alone: Callable[..., Sequence[Request]] = lambda *_: (),
        locked: bool = True,
        start_seconds: float = START_TIMEOUT,
        count: Callable[..., int] = lambda *_: 1,
        concurrent: int = 1,
    ) -> None:
        self.make = make
        self.arguments = arguments
        self.timeout = timeout
        self.budget = budget
        self.alone = alone
        self.locked = locked
        self.start_seconds = start_seconds
        self.count = count
        self.concurrent = concurrent
        self.template: WorkerTemplate | None = None
        self.workers: list[JudgeWorker] = []
        self.wanted = 1
        self.unstarted = 0

    def start_workers(self) -> None:
        """Start the workers that are missing, in the background."""
        if self.template is None or self.template.has_ended():
            self.template = WorkerTemplate(self.make, *self.arguments, locked=self.locked)
        while len(self.workers) < self.wanted:
            self.workers.append(JudgeWorker(self.template, self.start_seconds))

    def is_asynchronous(self) -> bool:
        """Whether the judge can handle several calls at a time; waits until it is made.

        Raises:
            UnmadeJudgeError: it cannot be made, or its process has ended twice before it was.

        """
        self._ask_until(lambda: any(worker.ready for worker in self.workers), RequestBatch([], 0.0, 0.0))
        return any(worker.is_asynchronous for worker in self.workers)

    def answer_requests(self, requests: Sequence[Request]) -> list[float | None]:
        """Return an answer to each request of one call, in order; None if it could not be judged.

        Raises:
            RuntimeError: there is no judge.

        """
        try:
            return [_read_answer(reply) for (reply,) in self.ask_requests(requests)]
        except UnmadeJudgeError as error:
            maker = f"{self.make.__module__}.{self.make.__name__}"
            raise RuntimeError(f"{maker}: {error}. Memory, or the number of processes, may be limited here.") from None

    def ask_requests(self, requests: Sequence[Request]) -> list[list[Reply | None]]:
        """Return the replies to each request, in order; None for a call that could not be judged.

        Raises:
            UnmadeJudgeError: there is no judge.

        """
        batch = self._ask_batch(RequestBatch(requests, self.timeout, self.budget, self.count))
        if batch.late:
            self._decide_timed_out(batch)
        return batch.replies

    def _ask_batch(self, batch: RequestBatch) -> RequestBatch:
        self._ask_until(lambda: not batch.advance_round(), batch)
        if batch.replies:
            self.start_workers()  # before the next batch needs them
        return batch

    def _ask_until(self, is_over: Callable[[], bool], batch: RequestBatch) -> None:
        while not is_over():
            self.start_workers()
            self._assign_requests(batch)
            self._wait_for_replies()
            for worker in [worker for worker in self.workers if worker.busy]:
                self._take_replies(worker, batch)
            if batch.measure_duration() > HELP_AFTER and self.locked:
                self.wanted = POOL_SIZE

    def _decide_timed_out(self, batch: RequestBatch) -> None:
        """Decide requests that ran out of time: wrong, unless the reference alone needs as long."""
        references = [
            {pickle.dumps(request): request for request in self.alone(*pending.request)} for pending in batch.late
        ]
        distinct = {key: request for requests in references for key, request in requests.items()}
        trial = self._ask_batch(RequestBatch(list(distinct.values()), batch.limit, batch.limit * len(distinct)))
        reply_lists = dict(zip(distinct, trial.replies, strict=True))
        for pending, requests in zip(batch.late, references, strict=True):
            if all(_read_answer(reply_lists[key][0]) is not None for key in requests):
                batch.blame_request(pending, f"it took longer than {batch.limit:g} s")
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
            elif batch.waiting and len(batch.asked) < POOL_SIZE - 1:
                batch.assign_next(worker, self.concurrent)

    def _wait_for_replies(self) -> None:
        poll = select.poll()
        for worker in self.workers:
            poll.register(worker.socket, (select.POLLIN * worker.busy) | (select.POLLOUT * bool(worker.unsent)))
        poll.poll(1000 * _TICK)

    def _take_replies(self, worker: JudgeWorker, batch: RequestBatch) -> None:
        """Record what a worker has replied, if anything, and replace a worker that cannot reply."""
        was_ready = worker.ready
        try:
            is_answered = worker.receive_replies()
        except WorkerError as failure:
            self._dismiss_worker(worker)
            if worker in batch.asked:
                batch.requeue_or_decide(worker, failure)
            elif not was_ready:
                self._count_unstarted(worker, failure)
            return
        if is_answered and was_ready:
            batch.record_replies(worker)
        self.unstarted *= not is_answered

    def _count_unstarted(self, worker: JudgeWorker, failure: WorkerError) -> None:
        """Count judges that were not made; raise at the second, or at once if another try would be the same."""
        self.unstarted += worker.template is self.template  # several workers may fail with one template
        worker.template.stop()
        self.template = None
        if self.unstarted > 1 or type(failure) is not WorkerError or str(failure) == CROWD_FAULT:
            self.unstarted = 0
            raise UnmadeJudgeError(str(failure))

    def find_crowd(self) -> str:
        """Return the fault of a judge whose processes, left behind, go on to multiply; empty if it has none."""
        template, old_count = self.template, 1
        while template and not self.locked and (count := len(list_descendants(template.process.pid))) > old_count:
            old_count = count
            time.sleep(3 * WATCH_INTERVAL)
            if template.explain_end() == CROWD_FAULT:
                return CROWD_FAULT
        return ""

    def stop_workers(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()
        if self.template is not None:
            self.template.stop()
        self.workers, self.template = [], None

    def _dismiss_worker(self, worker: JudgeWorker) -> None:
        self.workers.remove(worker)
        if not self.locked:
            worker.template.stop()  # and with it what its only worker has started
        worker.stop()


def _read_answer(reply: Reply | None) -> float | None:
    """Return the answer to a request of one call: 0 if it is itself at fault, None if it could not be judged."""
    if reply is None:
        return None
    return reply.values[0] if reply.values else 0.0
