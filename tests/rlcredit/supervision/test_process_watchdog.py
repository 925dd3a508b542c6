"""A process of a run that is lost ends the others."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch.distributed as dist
from lightning.fabric.strategies.launchers import subprocess_script

from rlcredit.base.exit_status import ProcessLost
from rlcredit.supervision import process_watchdog
from rlcredit.supervision.process_watchdog import Heartbeat, ProcessWatchdog

GLOO = "[gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: Connection reset by peer"


@pytest.fixture(autouse=True)
def restore_end_of_failed_run(monkeypatch):
    """Put Lightning's own function back, which a watchdog replaces."""
    observer = subprocess_script._ChildProcessObserver
    monkeypatch.setattr(observer, "_terminate_all", observer._terminate_all)


@pytest.fixture
def other(monkeypatch):
    """A store that two processes share, and the signs of the second; what ends this process is noted."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: dist.PrefixStore("run", store))
    monkeypatch.setattr(process_watchdog, "HEARTBEAT_INTERVAL", 0.02)
    monkeypatch.setattr(process_watchdog, "SILENCE_SECONDS", 0.6)
    ended = []
    monkeypatch.setattr(process_watchdog, "end_process", ended.append)
    signs = dist.PrefixStore("run", store)
    return SimpleNamespace(sign=lambda text: signs.set("alive/1", text), ended=ended)


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_signs_are_heard_and_their_end_is_noticed(other, capsys):
    watch = Heartbeat(0, 2)
    began = time.monotonic()
    for number in range(40):  # longer than the silence
        other.sign(str(number))
        time.sleep(0.03)
    assert time.monotonic() - began > process_watchdog.SILENCE_SECONDS
    assert other.ended == []
    assert until(lambda: other.ended)
    watch.stop()
    assert other.ended[0] == ProcessLost.status
    assert "Process 1 of this run has given no sign for" in capsys.readouterr().err


def test_a_process_that_has_finished_is_not_missed(other):
    watch = Heartbeat(0, 2)
    other.sign("done")
    time.sleep(3 * process_watchdog.SILENCE_SECONDS)
    watch.stop()
    assert other.ended == []


@pytest.mark.parametrize(("rank", "told"), [(0, ""), (1, "error: Another process of this run has ended after step 3.")])
def test_the_error_of_an_exchange_becomes_a_message(rank, told, capsys):
    watched = ProcessWatchdog()
    watched.watch = SimpleNamespace(stop=lambda: None)
    trainer = SimpleNamespace(global_step=3, global_rank=rank)
    with pytest.raises(ProcessLost, match="has ended after step 3"):
        watched.on_exception(trainer, None, RuntimeError(GLOO))
    assert capsys.readouterr().err.startswith(told)


def test_other_errors_stay_what_they_are():
    watched = ProcessWatchdog()
    watched.on_exception(None, None, RuntimeError(GLOO))  # one process alone
    watched.watch = SimpleNamespace(stop=lambda: None)
    watched.on_exception(None, None, RuntimeError("CUDA out of memory"))
    watched.on_exception(None, None, ValueError(GLOO))


CHILD = """
import subprocess, sys
from lightning.fabric.strategies.launchers.subprocess_script import _ChildProcessObserver
from rlcredit.supervision import process_watchdog
process_watchdog.LEAVE = 0.0
process_watchdog.ProcessWatchdog()
child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(9)"])
child.wait()
_ChildProcessObserver(main_pid=0, child_processes=[child])._run()
"""


@pytest.mark.slow
def test_a_child_that_has_failed_ends_the_first_process_with_a_message_and_status_7():
    ended = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 7
    assert "error: Another process of this run has ended. " in ended.stderr
