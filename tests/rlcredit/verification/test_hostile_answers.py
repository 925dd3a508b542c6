import signal
import socket
import time

import pytest

from rlcredit.tasks import ReasoningGym
from rlcredit.verification import sandbox
from rlcredit.verification.answer_grammar import is_plain_expression
from rlcredit.verification.reasoning_gym_scorers import EVALUATING_DATASETS, is_admissible_answer, make_gym_scorer
from rlcredit.verification.verifiers import MathVerifier, Verdict
from tests.rlcredit.verification.hostile import CODE, HOSTILE
from tests.slow_cases import mark_others_slow

SIZES = {"train_size": 2, "validation_size": 1, "prompts_per_step": 1}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == "countdown" else pytest.mark.slow) for name in EVALUATING_DATASETS],
)
def evaluating(request):
    """Every task whose scorer evaluates answers, with the worker processes until the next one comes."""
    task = ReasoningGym(request.param, train_size=20, validation_size=1, prompts_per_step=1)
    task.setup()
    return task


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Fill in the templates; afterwards nothing has been touched, called or signalled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "secret")
    calls, before = [], signal.signal(signal.SIGUSR1, lambda *_: calls.append("signal"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        yield lambda templates: [text.format(marker=tmp_path / "pwned", port=port) for text in templates]
        with pytest.raises(BlockingIOError):
            server.accept()
    signal.signal(signal.SIGUSR1, before)
    assert (calls, list(tmp_path.iterdir())) == ([], [])


def completions(answers):
    return [f"so the answer is: {answer}" for answer in answers] + [rf"\boxed{{{answer}}}" for answer in answers]


def test_hostile_answers_do_nothing_and_are_never_right(hostile, evaluating, monkeypatch):
    monkeypatch.setattr(evaluating, "solved_at", 0.09)
    texts, started = completions(hostile(HOSTILE)), time.monotonic()
    verdicts = evaluating.judge(texts, [evaluating.train_set[0]] * len(texts))
    assert len(texts) >= 200
    assert [text for text, verdict in zip(texts, verdicts) if verdict is Verdict.RIGHT] == []
    assert time.monotonic() - started < 60


def test_hostile_answers_to_mathematics_are_wrong(hostile):
    texts, started = completions(hostile(HOSTILE)), time.monotonic()
    verdicts = MathVerifier().judge(texts, ["7"] * len(texts))
    unearned = (Verdict.WRONG, Verdict.NO_ANSWER)  # a box whose brace is escaped never closes
    assert {text[:80]: verdict for text, verdict in zip(texts, verdicts) if verdict not in unearned} == {}
    assert time.monotonic() - started < 60


@pytest.mark.skipif(not sandbox.can_lock_process(), reason="needs seccomp")
@pytest.mark.parametrize("name", mark_others_slow(["countdown", "string_insertion"]))
def test_behind_the_grammar_the_same_code_runs_and_can_do_nothing(hostile, name):
    # It can still change the scorer in its own process, so the grammar is what keeps verdicts honest.
    task = ReasoningGym(name, **SIZES, verify_budget=2.0)
    task.setup()
    task.worker_pool.timeout = 0.5
    answers = task.worker_pool.answer_requests([(answer, task.train_set[0]._asdict()) for answer in hostile(CODE)])
    assert len(answers) >= 70


def test_references_are_judged_right(evaluating):
    # A fifteenth of the references of intermediate_integration is an integral that sympy could not solve: no answer.
    examples = [example for example in evaluating.train_set if "Integral" not in example.answer]
    assert len(examples) >= 15
    answers = [rf"\boxed{{{example.answer}}}" for example in examples]
    assert evaluating.judge(answers, examples) == [Verdict.RIGHT] * len(examples)


def test_an_answer_that_the_scorer_stumbles_over_is_wrong():
    # prime_factorization multiplies what int() has read, outside any try.
    score = make_gym_scorer("prime_factorization", {})
    assert score("2 × three", {"question": "", "answer": "2 × 3", "metadata": {}}) == 0.0
    assert score("2 × three", {"question": "", "answer": "two", "metadata": {}}) is None


@pytest.mark.slow
def test_a_batch_of_hostile_answers_cannot_stop_training():
    # Each of them within the grammar, and each too long for the computer algebra system.
    task = ReasoningGym("intermediate_integration", **SIZES, verify_budget=2.0)
    task.setup()
    slow = [f"sqrt(sin(x)+cos(x)**{k % 90 + 9}+exp(sqrt(x)))**{k + 9}/tan(log(x)+{k})**9" for k in range(24)]
    assert all(is_plain_expression(text, "x", ["sin", "cos", "tan", "exp", "log", "sqrt"]) for text in slow)
    started = time.monotonic()
    verdicts = task.judge([rf"\boxed{{{text}}}" for text in slow], [task.train_set[0]] * len(slow))
    assert verdicts == [Verdict.WRONG] * len(slow)
    assert time.monotonic() - started < 34


def test_long_numbers_are_refused_unless_the_reference_is_one():
    entry = {"answer": "3e10457", "metadata": {}}
    assert is_admissible_answer("base_conversion", "3e10457", entry)
    assert not is_admissible_answer("base_conversion", "3e10457", {**entry, "answer": "5"})
    assert not is_admissible_answer("base_conversion", "5" * 20_001, entry)
