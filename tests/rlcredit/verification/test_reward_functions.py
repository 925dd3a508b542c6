"""Reward functions run in processes of their own, locked or not; no completion gains from making one fail."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlcredit.verification import user_functions
from rlcredit.verification.fault_attribution import AT_FAULT, UNTOLD_VALUE
from rlcredit.verification.process_tree import list_descendants
from rlcredit.verification.reward_calls import RewardCall
from rlcredit.verification.reward_functions import (
    RewardFunction,
    RewardSum,
    read_reward_functions,
    replace_faults,
    weighted_sums,
)
from rlcredit.verification.verifiers import Verdict

REWARDS = """
import asyncio, os, socket, subprocess, sys, time

def near_five(completions, **kwargs):
    return [-abs(5 - len(text)) for text in completions]

def solves(prompts, completions, solution, **kwargs):
    for text in completions:
        if text == "hang":
            time.sleep(60)
        if text == "die":
            os._exit(1)
        if text == "raise":
            raise ValueError(text)
    return [1.0 if text == right else 0.3 if text.isdigit() else None for text, right in zip(completions, solution)]

def odd(completions, **kwargs):
    return [float("nan") if text == "odd" else 1.0 for text in completions]

def chat(completions, **kwargs):
    return [float(len(completion[0]["content"])) for completion in completions]

def files(completions, **kwargs):
    return [float(len(open("/etc/hostname").read())) for _ in completions]

def talks(completions, **kwargs):
    print("judging", completions, "x" * 20_000, flush=True)
    print("judging", completions, file=sys.stderr)
    return [1.0 for _ in completions]

def smallest(completions, **kwargs):
    values = [int(text.split()[-1]) for text in completions]
    return [float(value == min(values)) for value in values]

def short(completions, **kwargs):
    return [1.0]

def texts(completions, **kwargs):
    return ["1.0" for _ in completions]

def scores(completions, **kwargs):
    return {number: 1.0 for number, _ in enumerate(completions)}

def sometimes(completions, **kwargs):
    return [1.0] if "short" in completions else [float(len(text)) for text in completions]

def nothing(completions, **kwargs):
    return [None for _ in completions]

def exits(completions, **kwargs):
    os._exit(0)

def leaves(completions, **kwargs):
    sys.exit(0)

def interrupts(completions, **kwargs):
    raise KeyboardInterrupt

def stuck(completions, **kwargs):
    time.sleep(60)

def floods(completions, **kwargs):
    for descriptor in range(4096):
        try:
            os.write(descriptor, b"x" * 17)
        except OSError:
            pass
    return [1.0 for _ in completions]

def closes(completions, **kwargs):
    os.closerange(0, 4096)
    return [1.0 for _ in completions]

def crowds(completions, **kwargs):
    for _ in range(400):
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
    time.sleep(60)

def comes_back_twice(completions, **kwargs):
    os.fork()
    return [1.0 for _ in completions]

def does_as_it_likes(completions, **kwargs):
    subprocess.Popen(["sleep", "987"], start_new_session=True)
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
    found = subprocess.run(["echo", "4"], capture_output=True, text=True).stdout
    return [float(found) + ("SECRET" in os.environ) for _ in completions]

async def waits(completions, **kwargs):
    if "hang" in completions:
        await asyncio.sleep(60)
    if "block" in completions:
        time.sleep(60)
    if "raise" in completions:
        raise TimeoutError("of its own")
    await asyncio.sleep(0.2)
    return [float(len(text)) for text in completions]

def promises(completions, **kwargs):
    return waits(completions)
"""
RIGHT, WRONG, UNJUDGED, NO_ANSWER = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED, Verdict.NO_ANSWER


def call(*completions, solution="42"):
    return RewardCall("6 * 7 = ?", list(completions), {"solution": solution}, solution)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "a key that a server wants")
    return tmp_path


def sum_of(name, **how):
    return RewardSum(read_reward_functions({"function": f"my_rewards.{name}", **how}))


def rewards_of(scores):
    return [None if math.isnan(each) else round(each, 5) for each in scores.rewards.tolist()]


def test_weights_add_up_and_none_does_not_apply(folder):
    summed = RewardSum(
        read_reward_functions(["my_rewards.solves", {"function": "my_rewards.near_five", "weight": 0.1}])
    )
    scores = summed.score([call("42", "7", "words")], [])
    # 1 - 0.3; 0.3 - 0.4; only the length, which is that of five letters.
    assert rewards_of(scores) == [0.7, -0.1, 0.0]
    assert scores.verdicts == [WRONG, WRONG, WRONG]
    assert scores.parts["near_five"].tolist() == [-3.0, -4.0, 0.0]
    assert scores.parts["solves"].isnan().tolist() == [False, False, True]


def test_where_no_function_applies_nobody_can_tell(folder):
    scores = RewardSum(read_reward_functions("my_rewards.solves")).score([call("42", "words")], [])
    assert rewards_of(scores) == [1.0, None]
    assert scores.verdicts == [RIGHT, UNJUDGED]


@pytest.mark.parametrize("locked", [False, True])
def test_what_breaks_a_function_gets_the_worst_of_its_prompt(folder, capsys, locked):
    summed = sum_of("solves", locked=locked, seconds=1.0)
    calls = [call("42", "raise"), call("42", "die", "7"), call("hang", "7"), call("42", "9")]
    scores = summed.score(calls, [])
    # 0.3 is the worst of the others in the second and third prompt, and nobody gets more than nothing for a fault.
    assert rewards_of(scores) == [1.0, 0.0, 1.0, 0.0, 0.3, 0.0, 0.3, 1.0, 0.3]
    assert capsys.readouterr().err.count("Such completions get the worst reward of their prompt, and at most 0.") == 1


@pytest.mark.parametrize("breaking", ["none", "-", "so no"])
def test_one_completion_that_breaks_a_function_moves_no_other(folder, breaking):
    # Asked one by one, each would be the smallest of its own.
    assert rewards_of(sum_of("smallest").score([call("so 1", "so 2", breaking, "so 3")], [])) == [1.0, 0.0, 0.0, 0.0]


def test_a_locked_function_may_print_what_nobody_sees(folder, capfd):
    assert rewards_of(sum_of("talks", locked=True).score([call("a", "b")] * 3, [])) == [1.0] * 6
    assert "judging" not in "".join(capfd.readouterr())


def test_a_locked_function_can_open_nothing(folder):
    with pytest.raises(
        ValueError, match=r"data.init_args.rewards: my_rewards.files: .* \(in a " r"locked process, which can open"
    ):
        sum_of("files", locked=True).start(call())
    assert rewards_of(sum_of("files").score([call("a")], []))[0] > 0


def test_an_unlocked_function_does_what_its_user_may_and_leaves_nothing_behind(folder):
    summed = sum_of("does_as_it_likes")
    assert rewards_of(summed.score([call("a", "b")], [])) == [5.0, 5.0]
    pool = summed.asked["my_rewards.does_as_it_likes"].pool
    left = list_descendants(pool.template.process.pid)
    pool.stop_workers()
    assert len(left) > 3
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in left):
        assert time.monotonic() < end
        time.sleep(0.05)


FAULTS = {
    "short": r"called with 4 completions to the prompt .*, it returned \[1.0\] \(list of 1\); expected a list of 4",
    "texts": r"it returned '1.0' \(str\) as the reward of a completion; expected a number or None",
    "scores": r"it returned \{0: 1.0, .*\} \(dict\); expected a list of 4",
    "exits": "it has ended its process",
    "leaves": "it raised SystemExit: 0",
    "interrupts": "it raised KeyboardInterrupt",
    "stuck": "it took longer than 1 s",
    "closes": "it has ended its process, or closed files",
    "nowhere": "it cannot be used: the module my_rewards has no `nowhere`",
}


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize(("name", "fault"), FAULTS.items(), ids=FAULTS)
def test_a_function_that_cannot_reward_is_refused_in_one_sentence_within_seconds(
    folder, monkeypatch, name, fault, locked
):
    monkeypatch.setattr(user_functions, "START_SECONDS", 1.0 if name == "stuck" else 20.0)
    started = time.monotonic()
    with pytest.raises(ValueError, match=rf"^data.init_args.rewards: my_rewards.{name}: .*{fault}"):
        sum_of(name, locked=locked, seconds=1.0).start(call())
    assert time.monotonic() - started < 20


def test_what_writes_to_the_files_of_others_or_starts_too_many_processes_is_refused(folder):
    with pytest.raises(ValueError, match=r"my_rewards.floods: .* it has written into files that are not its own"):
        sum_of("floods").start(call())
    before = set(os.listdir("/proc"))
    with pytest.raises(ValueError, match=r"my_rewards.crowds: .* it has started more than 256 processes"):
        sum_of("crowds").start(call())
    end = time.monotonic() + 20
    while len(set(os.listdir("/proc")) - before) >= 100 and time.monotonic() < end:
        time.sleep(0.1)  # the system takes a while to bury four hundred
    assert len(set(os.listdir("/proc")) - before) < 100


IMPORTED = {
    "os._exit(0)": "it has ended its process",
    "raise SystemExit": "it raised SystemExit",
    "time.sleep(60)": "it took longer than 2 s",
    "os.kill(os.getpid(), 19)": "it stood still",
    "if os.fork() == 0: time.sleep(60)": "importing its module leaves a process behind",
    "os.closerange(0, 4096)": "it has ended its process, or closed files",
}


@pytest.mark.parametrize(("line", "fault"), IMPORTED.items(), ids=IMPORTED)
def test_what_an_import_does_is_refused_in_one_sentence(folder, monkeypatch, line, fault):
    monkeypatch.setattr(user_functions, "START_SECONDS", 2.0)
    (folder / "imported.py").write_text(f"import os, time\n{line}\ndef give(completions, **_): return [1.0]\n")
    with pytest.raises(ValueError, match=f"data.init_args.rewards: imported.give: it cannot be used: .*{fault}"):
        RewardSum(read_reward_functions({"function": "imported.give", "seconds": 2.0})).start(call())


def test_a_function_that_forks_and_comes_back_answers_once(folder):
    assert rewards_of(sum_of("comes_back_twice").score([call("a", "b")] * 3, [])) == [1.0] * 6


def test_a_wrong_number_after_the_start_leaves_its_prompt_unjudged_and_is_said_once(folder, capsys):
    scores = sum_of("sometimes").score([call("one", "three"), call("short", "b"), call("short", "c")], [])
    assert rewards_of(scores) == [3.0, 5.0, None, None, None, None]
    told = capsys.readouterr().err
    assert told.count("my_rewards.sometimes: it returned [1.0] (list of 1); expected a list of 2") == 1


def test_what_rewards_nothing_that_it_is_tried_with_is_said(folder, capsys):
    sum_of("nothing").start(call())
    assert "my_rewards.nothing: it returned None for all completions" in capsys.readouterr().err


def test_where_there_is_no_reference_made_up_completions_are_tried(folder):
    unanswered = call("42")._replace(reference=None)
    with pytest.raises(ValueError, match=r"called with 3 completions .* it returned \[1.0\]"):
        sum_of("short").start(unanswered)
    with pytest.raises(ValueError, match=r"called with 3 completions .* it raised (ValueError|IndexError)"):
        sum_of("smallest").start(unanswered)
    assert rewards_of(sum_of("near_five").score([unanswered], [])) == [-3.0]


@pytest.mark.slow
def test_asynchronous_functions_are_awaited_together_and_each_has_its_time(folder):
    summed = sum_of("waits", seconds=1.0)
    summed.start(call())
    started = time.monotonic()
    prompts = [call("a", "bcd") for _ in range(30)]
    assert rewards_of(summed.score(prompts, [])) == [1.0, 3.0] * 30
    assert time.monotonic() - started < 3, "30 times a fifth of a second, one after the other, are six"
    scores = summed.score([call("ab", "hang"), call("c"), call("ab", "raise"), call("block", "d"), call("e")], [])
    assert rewards_of(scores) == [2.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(("name", "message"), [("waits", "it is asynchronous, .* Set `locked: false`")])
def test_a_locked_function_waits_for_nothing(folder, name, message):
    with pytest.raises(ValueError, match=message):
        sum_of(name, locked=True).start(call())


def test_a_plain_function_that_returns_a_coroutine_is_refused(folder):
    with pytest.raises(ValueError, match=r"my_rewards.promises: .* it returned a coroutine. Define it by `async def`"):
        sum_of("promises").start(call())


SERVER = """
import aiohttp, asyncio
from aiohttp import web

async def answer(request):
    await asyncio.sleep(0.1)
    return web.json_response({"score": len((await request.json())["text"])})

async def serve():
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(serve())
"""

ASKING = """
import asyncio, os
import aiohttp

async def ask(session, text):
    async with session.post(os.environ["JUDGE"], json={"text": text}) as answer:
        return float((await answer.json())["score"])

async def judge(completions, **columns):
    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*(ask(session, text) for text in completions))
"""


@pytest.mark.slow
def test_a_server_rewards_512_completions(folder, monkeypatch):
    (folder / "asking.py").write_text(ASKING)
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        monkeypatch.setenv("JUDGE", f"http://127.0.0.1:{server.stdout.readline().strip()}")
        summed = RewardSum(read_reward_functions("asking.judge"))
        summed.start(call())
        started = time.monotonic()
        scores = summed.score([call(*("a" * (1 + row % 9) for row in range(8))) for _ in range(64)], [])
        server.kill()
    assert rewards_of(scores) == [float(1 + row) for row in range(8)] * 64
    assert time.monotonic() - started < 25, "one after the other they take 51 seconds"


def test_what_is_not_finite_is_unjudged_and_named_with_its_completion(folder, capsys):
    summed = RewardSum(read_reward_functions(["my_rewards.odd", "my_rewards.near_five"]))
    assert rewards_of(summed.score([call("odd", "fives")], [])) == [None, 1.0]
    told = capsys.readouterr()
    assert "my_rewards.odd: it returned a reward that is not finite as float32 for the completion 'odd'." in told.err


def test_the_verifier_decides_what_is_right_where_it_takes_part(folder):
    functions = read_reward_functions(["verifier", RewardFunction("my_rewards.near_five", 0.1)])
    judged = [(RIGHT, 1.0), (WRONG, 0.3), (NO_ANSWER, 0.0), (UNJUDGED, None)]
    scores = RewardSum(functions).score([call("42", "7", "words", "fives")], judged)
    assert rewards_of(scores) == [0.7, -0.1, 0.0, None]
    assert scores.verdicts == [RIGHT, WRONG, NO_ANSWER, UNJUDGED]


def test_right_begins_where_the_task_says_so(folder):
    for solved_at, verdicts in ((1.0, [WRONG, WRONG]), (0.0, [RIGHT, WRONG]), (-4.0, [RIGHT, RIGHT])):
        summed = RewardSum(read_reward_functions("my_rewards.near_five"), solved_at)
        assert summed.score([call("fives", "4")], []).verdicts == verdicts


def test_weights_that_add_up_to_one_in_decimals_reach_one():
    functions = [RewardFunction("verifier", weight) for weight in (0.7, 0.2, 0.1)]
    assert 0.7 + 0.2 + 0.1 < 1
    assert RewardSum(functions)._judge_sum(0.7 + 0.2 + 0.1) is RIGHT


def test_a_chat_function_on_texts_is_told_what_to_do(folder):
    with pytest.raises(
        ValueError,
        match=r"data.init_args.rewards: my_rewards.chat: .* It expects " r"messages, .* set data.init_args.system",
    ):
        RewardSum(read_reward_functions("my_rewards.chat")).start(call())
    said = [{"role": "assistant", "content": "four"}]
    chat = RewardCall([{"role": "user", "content": "?"}], [said], {}, said)
    assert rewards_of(RewardSum(read_reward_functions("my_rewards.chat")).score([chat], [])) == [4.0]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], "is empty"),
        (["mine.a", {"function": "mine.a", "weight": 2}], "mine.a is named twice"),
        ([{"name": "mine.a"}], "expected the name of a function, or {function: ..., weight: ..., locked: ..., seconds"),
        ([{"function": "mine.a", "seconds": -1}], "mine.a has -1 seconds, expected a positive number"),
        ([{"function": "mine.a", "weight": math.inf}], "the weight of mine.a is inf"),
        ("os.getcwd", "os.getcwd is part of Python and not a reward"),
        ("format", "'format' is not a dotted path"),
    ],
)
def test_what_names_no_reward_function_is_refused(written, message):
    with pytest.raises(ValueError, match=f"data.init_args.rewards.*{message}"):
        RewardSum(read_reward_functions(written))


def test_faults_and_sums():
    assert replace_faults([AT_FAULT, AT_FAULT], 1.0) == [0.0, 0.0]
    assert replace_faults([AT_FAULT, 2.0, None, UNTOLD_VALUE], 1.0)[:3] == [0.0, 2.0, None]
    assert weighted_sums([[None], [None]], [1.0, 1.0]) == [None]
    assert weighted_sums([[3e38, -3e38]], [2.0]) == [None, None], "float32 ends at 3.4e38"


def test_names_in_metrics_are_short_where_they_differ():
    paths = ["one.length", "two.length", "one.format", "verifier"]
    summed = RewardSum([RewardFunction(path) for path in paths], unsafe=True)
    assert summed.names == ["one.length", "two.length", "format", "verifier"]
