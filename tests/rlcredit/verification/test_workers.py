import os
import signal
import subprocess
import sys
import time

import pytest

from rlcredit.verification.jury import Jury
from rlcredit.verification.workers import environment
from tests.rlcredit.verification.suspects import FORGED, deeds, sayings, stillborn


@pytest.fixture
def jury():
    jury = Jury(deeds, timeout=1.0)
    assert jury.answers([("answer", 2.5), ("shrug",)]) == [2.5, None]
    return jury


def test_answers_come_in_order(jury):
    assert jury.answers([("answer", float(number)) for number in range(500)]) == list(map(float, range(500)))


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_a_worker_forges_ends_it_and_counts_for_nothing(forged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jury = Jury(sayings, timeout=2.0)
    assert jury.answers([("nothing", 0.25), (forged, 1.0), ("nothing", 0.5)]) == [0.25, 0.0, 0.5]
    assert list(tmp_path.iterdir()) == []


def test_what_kills_two_workers_is_wrong_and_costs_the_others_nothing(jury):
    assert jury.answers([("answer", 0.5), ("die",), ("answer", 0.75)]) == [0.5, 0.0, 0.75]


def test_what_computes_for_ever_is_wrong(jury):
    assert jury.answers([("compute", 100.0), ("answer", 0.5)]) == [0.0, 0.5]


def test_a_worker_that_stands_still_says_nothing_about_the_question(jury):
    assert jury.answers([("sleep", 100.0), ("answer", 0.5)]) == [None, 0.5]


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_an_innocent_answer_survives_its_worker(jury, blow):
    struck = [worker.process.pid for worker in jury.workers]
    for pid in struck:
        os.kill(pid, blow)
    assert jury.answers([("answer", 0.5)]) == [0.5]


def test_a_stopped_worker_that_reads_nothing_does_not_block_the_trainer(jury):
    for worker in jury.workers:
        os.kill(worker.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    assert jury.answers([("answer", 0.5, *[" " * 10_000_000])]) in ([0.0], [None])
    assert time.monotonic() - started < 10


def test_a_budget_ends_a_batch():
    jury = Jury(deeds, timeout=5.0, budget=1.0)
    started = time.monotonic()
    answers = jury.answers([("answer", 0.5), *[("compute", 100.0 + number) for number in range(50)]])
    assert answers == [0.5] + 50 * [None]
    assert time.monotonic() - started < 8
    assert jury.answers([("answer", 0.5)]) == [0.5]


def test_workers_in_reserve_start_as_soon_as_a_batch_lasts(jury):
    assert len(jury.workers) == 1
    jury.answers([("compute", 0.7)])
    assert len(jury.workers) == 3


def test_no_secret_reaches_a_worker(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET", "secret")
    assert Jury(deeds).answers([("secrets",)]) == [0.0]
    assert environment().keys() <= {
        *("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    }


def test_a_worker_that_cannot_start_is_an_error():
    with pytest.raises(RuntimeError, match=r"suspects\.stillborn ended before it was ready, twice"):
        Jury(stillborn).answers([()])


ORPHANS = """
import os, signal, sys
from rlcredit.verification.workers import Worker
from tests.rlcredit.verification.suspects import deeds
idle, busy = Worker(deeds), Worker(deeds)
for worker in (idle, busy):
    while not worker.ready:
        worker.answer()
busy.ask("compute", 60.0, timeout=90)
print(idle.process.pid, busy.process.pid, flush=True)
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
