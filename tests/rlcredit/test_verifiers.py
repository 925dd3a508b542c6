import os
import signal

import pytest

from rlcredit import verifiers
from rlcredit.verifiers import MathVerifier, Verdict, exact_verdict, final_answer

RIGHT, WRONG, UNJUDGED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED


@pytest.fixture(scope="module")
def verifier():
    return MathVerifier(timeout=20)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} no, \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("first the answer is 3. Later The Answer Is: 4.", "4"),
        ("the answer is 3.5.", "3.5"),
        ("the answer is -12\nand so on", "-12"),
        (r"the answer is 7 but \boxed{8}", "8"),
        ("nothing", None),
        (r"\boxed{unclosed", None),
        (r"\boxed{1} and then \boxed{2", "1"),
        (r"\boxed 5 it is", "5"),
        ("the answer is 5, no wait, the answer is 6.", "6"),
        ("The answer is **5**.", "5"),
        ("the answer is 5" + " " * 100_000 + "x", "5" + " " * 100_000 + "x"),
    ],
)
def test_the_final_answer_is_the_last_one_given(text, answer):
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("answer", "reference", "verdict"),
    [
        ("12", "12", RIGHT),
        ("+1,200.0", "1200", RIGHT),
        ("0.5", r"\frac{1}{2}", RIGHT),
        ("2/4", "1/2", RIGHT),
        ("-0", "0", RIGHT),
        ("Paris", "paris", RIGHT),
        ("12", "-12", WRONG),
        ("0.333", "1/3", WRONG),
        ("12", "120", WRONG),
        ("1/0", "3", None),
        ("x+1", "1+x", None),
        ("0." + "3" * 5000, "1/3", None),
    ],
)
def test_exact_comparison_of_strings_and_numbers(answer, reference, verdict):
    assert exact_verdict(answer, reference) is verdict


@pytest.mark.parametrize(
    ("completion", "reference", "verdict"),
    [
        (r"\boxed{x^2+1}", "1+x^2", RIGHT),
        (r"\boxed{\sqrt{8}}", r"2\sqrt{2}", RIGHT),
        (r"\boxed{x^2+2}", "1+x^2", WRONG),
        ("no answer at all", "3", WRONG),
        (r"\boxed{}", "3", WRONG),
        (r"\boxed{}", "", WRONG),
        (r"\boxed{3}", "  ", WRONG),
    ],
)
def test_symbolic_comparison(verifier, completion, reference, verdict):
    assert verifier.verdict(completion, reference) is verdict


def test_a_reference_that_cannot_be_read_is_not_judged(verifier):
    assert verifier.verdict(r"\boxed{x}", r"???") is UNJUDGED


def test_a_hanging_comparison_is_killed_and_the_next_one_answered(monkeypatch):
    verifier = MathVerifier(timeout=0.5)
    assert verifier.verdict(r"\boxed{x+1}", "1+x") is RIGHT
    stopped = verifier.worker.process.pid
    os.kill(stopped, signal.SIGSTOP)  # as deaf as a runaway simplification
    assert verifier.verdict(r"\boxed{x+1}", "1+x") is UNJUDGED
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)
    assert MathVerifier.verdict(verifier, r"\boxed{x+1}", "1+x") is RIGHT


def test_a_comparison_that_raises_is_not_judged(monkeypatch):
    import math_verify

    def stumble(*args, **kwargs):
        raise RecursionError

    monkeypatch.setattr(math_verify, "verify", stumble)
    assert verifiers.symbolic_verdict("x", "y") is UNJUDGED
