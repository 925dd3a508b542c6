import re

import pytest

from rlcredit.episodes.environment import Turn
from rlcredit.episodes.environment_player import read_reply
from rlcredit.episodes.episode_table import open_episode, step_environments
from rlcredit.episodes.locked_environment import LockedEnvironment, lock_environment
from rlcredit.episodes.replay import refuse_changing_environment
from rlcredit.episodes.turn_values import TurnError
from rlcredit.tasks.example import Example
from rlcredit.verification import sandbox
from rlcredit.verification.worker_replies import Reply
from tests.rlcredit.episodes.counting import Counting
from tests.rlcredit.episodes.misbehaving import Awaited, Holding, Locked

EXAMPLES = [Example("add", "", {"seed": seed}) for seed in range(4)]

needs_lock = pytest.mark.skipif(not sandbox.can_lock_process(), reason="this system cannot lock a process")


def act(episodes, *actions):
    for episode, action in zip(episodes, actions, strict=True):
        episode.actions.append(action)
    answers = step_environments(episodes, "LockedEnvironment")
    for episode, answer in zip(episodes, answers, strict=True):
        episode.fault = str(answer) if isinstance(answer, TurnError) else None
    return answers


@pytest.fixture(scope="module")
def environment():
    locked = lock_environment(Locked())
    yield locked
    locked.workers.pool.stop_workers()


@needs_lock
def test_episodes_are_played_in_locked_processes(environment):
    assert isinstance(environment, LockedEnvironment)
    assert environment.is_graded
    episodes = [open_episode(environment, example) for example in EXAMPLES]
    assert [episode.opening for episode in episodes] == ["begin"] * 4
    assert act(episodes, "1", "2", "3", "4") == [Turn(f"{n} é", n / 10, False) for n in (1, 3, 5, 7)]
    assert act(episodes, "1", "1", "1", "3") == [Turn(f"{n} é", n / 10, n > 9) for n in (2, 4, 6, 10)]
    branch = episodes[0].environment.copy()
    assert act(episodes[:1], "5")[0].text == "7 é"
    assert branch.actions == ["1", "1"]
    refuse_changing_environment(environment, EXAMPLES[0])


@needs_lock
def test_rows_that_misbehave_are_named_and_the_others_go_on(environment):
    actions = {
        "exit": r"Locked: it raised SystemExit: 3 \(misbehaving\.py, line \d+\)\.",
        "end": r"Locked: it has ended its process",
        "open": r"Locked: it raised \w+.*\(misbehaving\.py, line \d+\)\.",
        "fill": r"Locked: it raised MemoryError",
        "long": r"Locked said 200,000 characters at a time, and may say 99,998\. Say less",
        "nothing": r"Locked\.step returned None\. Return Turn\(text, reward, done\)\.",
        "nan": r"Locked\.step returned the reward nan\.",
        "seven": r"Locked: it raised ValueError: invalid literal",
    }
    episodes = [open_episode(environment, EXAMPLES[1]) for _ in range(len(actions) + 1)]
    *faults, good = act(episodes, *actions, "4")
    for fault, message in zip(faults, actions.values(), strict=True):
        assert re.match(message, str(fault)), fault
    assert good == Turn("5 é", 0.5, False)


@needs_lock
@pytest.mark.parametrize("action", ["sleep", pytest.param("spin", marks=pytest.mark.slow)])
def test_what_blocks_has_three_seconds(environment, action):
    episodes = [open_episode(environment, EXAMPLES[1]) for _ in range(2)]
    late, good = act(episodes, action, "4")
    assert str(late) == "Locked: it took longer than 3 s."
    assert good.text == "5 é"
    assert str(act(episodes, "1", "1")[0]) == str(late)  # it is not asked again


@needs_lock
@pytest.mark.parametrize(
    ("environment", "fault"),
    [
        (Locked(opening=7), r"Locked\.reset returned 7\. Return a text, or None for the question as it stands\."),
        (Locked(opening="raise"), r"Locked: it raised KeyError: 'add' \(misbehaving\.py, line \d+\)\."),
        (
            Awaited(),
            r"Awaited cannot run in locked processes: .*its step is asynchronous, and a locked process can",
        ),
        (Holding(), r"Holding cannot run in locked processes: .*lambda.*Mend it, or set `locked = False`"),
    ],
    ids=["no text", "raises", "asynchronous", "unpickled"],
)
def test_what_cannot_begin_is_named(environment, fault):
    locked = lock_environment(environment)
    assert re.match(fault, str(open_episode(locked, EXAMPLES[0]).fault))
    if locked.workers.pool:
        locked.workers.pool.stop_workers()


def test_only_what_asks_for_it_is_locked(monkeypatch):
    plain = Counting()
    assert lock_environment(plain) is plain
    monkeypatch.setattr(sandbox, "can_lock_process", lambda: False)
    with pytest.raises(
        ValueError, match=r"data\.init_args\.environment: Locked evaluates answers of the policy, and this system"
    ):
        lock_environment(Locked())
    assert isinstance(lock_environment(Locked(), unsafe=True), LockedEnvironment)


def test_what_a_worker_forges_is_no_turn():
    assert str(read_reply(Reply([0.0, 0.0, 1e12]), "Game")) == "Game: it has written into files that are not its own."
    assert "files that are not its own" in str(read_reply(Reply([float("inf"), 0.0]), "Game"))
    assert str(read_reply(Reply(), "Game")).startswith("Game: ")
    assert read_reply(Reply([None, 1.0, 55.0]), "Game") == Turn("7", None, True)
