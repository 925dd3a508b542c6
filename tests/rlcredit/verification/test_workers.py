import os
import signal
import subprocess
import sys
import time

import pytest

from rlcredit.verification.worker_pool import WorkerPool
from rlcredit.verification.workers import JudgeWorker, build_worker_environment
from tests.rlcredit.verification.suspects import FORGED, deeds, sayings, stillborn


@pytest.fixture
def pool():
    pool = WorkerPool(deeds, timeout=1.0)
    assert pool.answer_requests([("answer", 2.5), ("shrug",)]) == [2.5, None]
    return pool


def test_answers_come_in_order(pool):
    assert pool.answer_requests([("answer", float(number)) for number in range(500)]) == list(map(float, range(500)))


def test_ctrl_c_reaches_the_trainer_alone(pool):
    assert os.getpgid(pool.template.process.pid) != os.getpgrp()


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_a_worker_forges_ends_it_and_counts_for_nothing(forged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pool = WorkerPool(sayings, timeout=2.0)
    assert pool.answer_requests([("nothing", 0.25), (forged, 1.0), ("nothing", 0.5)]) == [0.25, 0.0, 0.5]
    assert list(tmp_path.iterdir()) == []


def test_what_kills_two_workers_is_wrong_and_costs_the_others_nothing(pool):
    assert pool.answer_requests([("answer", 0.5), ("die",), ("answer", 0.75)]) == [0.5, 0.0, 0.75]


def test_what_computes_for_ever_is_wrong(pool):
    assert pool.answer_requests([("compute", 100.0), ("answer", 0.5)]) == [0.0, 0.5]


def test_what_sleeps_for_ever_is_wrong_as_what_computes(pool):
    assert pool.answer_requests([("sleep", 100.0), ("answer", 0.5)]) == [0.0, 0.5]


def test_a_worker_that_stands_still_says_nothing_about_the_question(pool, monkeypatch):
    # Every process that is asked is stopped at once, as a system without memory or processors would.
    ask = JudgeWorker.send_request

    def ask_and_stop(worker, *request, **limits):
        os.kill(worker.process.pid, signal.SIGSTOP)
        ask(worker, *request, **limits)

    monkeypatch.setattr(JudgeWorker, "send_request", ask_and_stop)
    assert pool.answer_requests([("answer", 0.5)]) == [None]


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_an_innocent_answer_survives_its_worker(pool, blow):
    struck = [worker.process.pid for worker in pool.workers]
    for pid in struck:
        os.kill(pid, blow)
    assert pool.answer_requests([("answer", 0.5)]) == [0.5]


def test_a_stopped_worker_that_reads_nothing_does_not_block_the_trainer(pool):
    for worker in pool.workers:
        os.kill(worker.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    assert pool.answer_requests([("answer", 0.5, *[" " * 10_000_000])]) in ([0.0], [None])
    assert time.monotonic() - started < 10


@pytest.mark.slow
def test_a_batch_of_nothing_but_slow_requests_ends_and_all_are_wrong():
    pool = WorkerPool(deeds, timeout=5.0, budget=1.0)
    started = time.monotonic()
    answers = pool.answer_requests([("answer", 0.5), *[("compute", 100.0 + number) for number in range(30)]])
    assert answers == [0.5] + 30 * [0.0]
    assert time.monotonic() - started < 20, "30 tenths of a second, and a second of the budget, on busy processors"
    assert pool.answer_requests([("answer", 0.5)]) == [0.5]


QUICK, SLOW = [("answer", 0.5)] * 30, [("compute", 100.0)] * 6


@pytest.mark.parametrize("order", [QUICK + SLOW, SLOW + QUICK, QUICK[:15] + SLOW + QUICK[15:]])
def test_the_quick_never_pay_for_the_slow(order):
    answers = WorkerPool(deeds, timeout=1.0, budget=1.2).answer_requests(order)
    assert answers == [0.5 if request in QUICK else 0.0 for request in order]


def test_what_needs_more_than_its_first_share_gets_what_the_others_leave():
    # A share of 0.1 s each at first; then 1.9 s for the two that are late, of which one needs half a second.
    requests = [*[("answer", 0.5)] * 30, ("compute", 0.5), ("compute", 100.0)]
    assert WorkerPool(deeds, timeout=3.0, budget=2.0).answer_requests(requests) == [*[0.5] * 30, 1.0, 0.0]


def test_the_reference_is_to_blame_if_it_takes_as_long(capsys):
    def alone(_, seconds):
        return [("compute", seconds - 100)]

    pool = WorkerPool(deeds, timeout=0.5, alone=alone)
    assert pool.answer_requests([("compute", 100.0), ("compute", 200.0), ("answer", 0.5)]) == [0.0, None, 0.5]


def test_workers_in_reserve_start_as_soon_as_a_batch_lasts(pool):
    assert len(pool.workers) == 1
    pool.answer_requests([("compute", 0.7)])
    assert len(pool.workers) == 3


def test_no_secret_reaches_a_worker(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET", "secret")
    assert WorkerPool(deeds).answer_requests([("secrets",)]) == [0.0]
    assert build_worker_environment().keys() <= {
        *("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    }


def test_a_worker_that_cannot_start_is_an_error():
    with pytest.raises(RuntimeError, match=r"suspects\.stillborn: it has ended its process"):
        WorkerPool(stillborn).answer_requests([()])


ORPHANS = """
import os, signal, sys
from rlcredit.verification.workers import JudgeWorker, WorkerTemplate
from tests.rlcredit.verification.suspects import deeds
template = WorkerTemplate(deeds)
idle, busy = JudgeWorker(template), JudgeWorker(template)
for worker in (idle, busy):
    while not worker.ready:
        worker.receive_replies()
busy.send_request("compute", 60.0, limit=90, patience=90)
print(template.process.pid, idle.process.pid, busy.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_die_with_their_parent_however_it_dies():
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    done = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, cwd=root)
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 10
    for pid in map(int, done.stdout.split()):
        while _runs(pid):
            assert time.monotonic() < end
            time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
