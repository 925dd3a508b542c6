import os
import signal
import time

import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.fault_attribution import judge_or_blame
from rlcredit.verification.mathematics import symbolic
from rlcredit.verification.sandbox import LateImportError
from rlcredit.verification.verifiers import MathVerifier, Verdict, judge_exactly
from rlcredit.verification.worker_process import LateImportBlocker

RIGHT, WRONG, UNJUDGED, NO_ANSWER = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED, Verdict.NO_ANSWER


@pytest.fixture(scope="module")
def verifier():
    return MathVerifier(timeout=20)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} no, \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("first the answer is 3. Later The Answer Is: 4.", "4"),
        ("the answer is 3.5.", "3.5"),
        ("The final answer to this arithmetic problem is 3.", "3"),
        ("The answer for the given question of today is 4.", "4"),
        ("the answer to 4 + 3 and what follows is 7", None),
        ("the answer is -12\nand so on", "-12"),
        (r"the answer is 7 but \boxed{8}", "8"),
        ("nothing", None),
        (r"\boxed{unclosed", None),
        (r"\boxed{1} and then \boxed{2", None),
        (r"The answer is 5. So \boxed{5", None),
        (r"\boxed 5 it is", "5"),
        ("the answer is 5, no wait, the answer is 6.", "6"),
        ("The answer is **5**.", "5"),
        ("The final answer is 42.", "42"),
        ("Final answer: 42", "42"),
        ("the correct answer is $42$", "$42$"),
        ("2 + 40 = 42\n#### 42", "42"),
        ("#### 41\nno\n#### 42\nthat is it", "42"),
        ("<answer>41</answer> or <answer> 42 </answer>", "42"),
        ("<answer>42", None),
        ("####", None),
        (r"#### 41, the answer is 40, so \boxed{42}", "42"),
        ("Answer: 5", "5"),
        ("**Answer:** 5 apples.\nThat is all", "5 apples"),
        ("### Final Answer\n\n**5**", "5"),
        ("Answer: 4. No.\nAnswer: 5.", "5"),
        ("Answer: 48 / 2\n#### 24", "24"),
        ("Question and answer: 7", None),
        ("The answers: 7", None),
        ("#### **5**", "5"),
        (r"The answer is \(5\).", "5"),
        ("The answer is `abc`.", "abc"),
        ("4 + 3 = 7", None),
        ("the answer is 5" + " " * 100_000 + "x", "5" + " " * 100_000 + "x"),
    ],
)
def test_the_final_answer_is_the_last_one_given(text, answer):
    assert find_final_answer(text) == answer


@pytest.mark.parametrize("text", ["The final answer is 42", "#### 42", "<answer>42</answer>", "The answer is 42."])
def test_an_answer_stated_otherwise_than_asked_is_judged_or_counted_and_never_wrong_in_silence(text):
    assert MathVerifier().judge_one(text, "42") is RIGHT
    assert MathVerifier().judge_one(text, "41") is WRONG
    strict = MathVerifier(formats=("boxed",))
    assert strict.judge_one(text, "42") is UNJUDGED
    assert strict.judge_one(text + r" \boxed{41}", "42") is WRONG
    assert strict.judge_one("no idea", "42") is NO_ANSWER


def test_formats_that_are_none_are_refused():
    with pytest.raises(
        ValueError, match="answer_formats to be one of boxed, tag, phrase, hashes, label, number, whole, got 'box'"
    ):
        MathVerifier(formats=("box",))
    with pytest.raises(ValueError, match="answer_formats is empty"):
        MathVerifier(formats=())


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
        ("1e-05", "0.00001", RIGHT),
        ("0.00001", "1e-05", RIGHT),
        (r"1.6 \times 10^{-19}", "1.6e-19", RIGHT),
        (r"1.6\times10^{-19}", r"1.7\times10^{-19}", WRONG),
        ("1e9999", "1", WRONG),
        ('"Paris"', "Paris", RIGHT),
        ("1,000 dollars", "1000", RIGHT),
        ("$1,000.00", "1000", RIGHT),
        ("-$5", "-5", RIGHT),
        ("$-5", "-5", RIGHT),
        ("12 marbles", "12", RIGHT),
        ("x = 5.", "5", RIGHT),
        ("x = 5 m/s^2", "5", RIGHT),
        ("5 m", "5", WRONG),
        (r"5\text{ km/h}", "5", RIGHT),
        ("12 marbles", "13", WRONG),
        ("12 marbles", "12 pears", WRONG),
        ("12 marbles", "12%", WRONG),
    ],
)
def test_exact_comparison_of_strings_and_numbers(answer, reference, verdict):
    assert judge_exactly(answer, reference) is verdict


@pytest.mark.parametrize(
    ("completion", "reference", "verdict"),
    [
        (r"\boxed{x^2+1}", "1+x^2", RIGHT),
        (r"\boxed{\sqrt{8}}", r"2\sqrt{2}", RIGHT),
        (r"\boxed{x^2+2}", "1+x^2", WRONG),
        ("no answer at all", "3", NO_ANSWER),
        (r"\boxed{}", "3", WRONG),
        (r"\boxed{}", "", WRONG),
        (r"\boxed{3}", "  ", WRONG),
    ],
)
def test_symbolic_comparison(verifier, completion, reference, verdict):
    assert verifier.judge_one(completion, reference) is verdict


def test_a_reference_that_cannot_be_read_is_not_judged(verifier):
    assert verifier.judge_one(r"\boxed{x}", r"???") is UNJUDGED


def test_a_stopped_comparison_is_killed_and_asked_again():
    verifier = MathVerifier(timeout=1.0)
    assert verifier.judge_one(r"\boxed{x+1}", "1+x") is RIGHT
    stopped = [worker.process.pid for worker in verifier.worker_pool.workers]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    assert verifier.judge_one(r"\boxed{x+1}", "1+x") is RIGHT
    assert stopped[0] not in [worker.process.pid for worker in verifier.worker_pool.workers]
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{stopped[0]}"):
        assert time.monotonic() < end


def test_what_raises_because_of_the_reference_is_not_judged(monkeypatch):
    def stumble(ours, theirs):
        raise RecursionError

    assert symbolic.judge_symbolically("x", "y+1") == 0.0
    monkeypatch.setattr(symbolic, "is_same_value", stumble)
    assert symbolic.judge_symbolically("x", "y+1") is None


def test_what_raises_because_of_the_answer_is_wrong(monkeypatch):
    compared = symbolic.is_same_value

    def stumble(ours, theirs):
        return 1 / 0 if ours != theirs else compared(ours, theirs)

    monkeypatch.setattr(symbolic, "is_same_value", stumble)
    assert symbolic.judge_symbolically("x", "y+1") == 0.0


@pytest.mark.parametrize(
    ("answer", "reference", "verdict"),
    [
        ("5%", "5", WRONG),
        (r"5\%", "5", WRONG),
        ("5%", "0.05", RIGHT),
        ("50%", r"50\%", RIGHT),
        ("50", r"50\%", RIGHT),
        ("0.5", r"50\%", RIGHT),
        ("x%", "x", WRONG),
        ("--5", "5", WRONG),
        ("5-", "5", WRONG),
        ("5=5", "5", WRONG),
        ("=5", "5", RIGHT),
        ("==5", "5", WRONG),
        ("x=5", "5", RIGHT),
        ("x_1 = 5", "5", RIGHT),
        ("f(x)=x+1", "1+x", RIGHT),
        ("5", "x=5", RIGHT),
        ("y=2x+1", "y=1+2x", RIGHT),
        ("2x=10", "5", WRONG),
        ("a=b=5", "5", WRONG),
        (r"\phantom{5}", "5", WRONG),
        (r"5\phantom{0}", "5", WRONG),
        (r"5\\6", "5", WRONG),
        ("5,5", "5", WRONG),
        ("5;5", "5", WRONG),
        ("5_6", "5", WRONG),
        ("5#", "5", WRONG),
        ("5)", "5", WRONG),
        ("5^", "5", WRONG),
        (r"5\text{ cm}", "5", RIGHT),
        ("1,000", "1000", RIGHT),
        ("2,1", "1,2", RIGHT),
        (r"(0, 1]", "(0,1]", RIGHT),
        (r"x \in [1,2]", "[1,2]", RIGHT),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & \frac{8}{2} \end{pmatrix}", RIGHT),
        (r"-\frac{\sqrt{3}}{2}", r"-\sqrt{\frac{3}{4}}", RIGHT),
        (r"2^{10}\pi", r"1024\pi", RIGHT),
    ],
)
def test_an_answer_is_one_finished_visible_expression(verifier, answer, reference, verdict):
    assert verifier.judge_one(rf"\boxed{{{answer}}}", reference) is verdict


@pytest.mark.parametrize(
    "answer",
    [
        *("5 or 6", "5 to 6", "5 million", "5 hundred", "5 dozen", "5 hundredths", "5 thousand dollars", "5k", "5 x"),
        *("5 times 2", "5 and 6 apples", "5 apples and 3 pears", "5 apples 6", "5 less than x", "5 squared", "5 pi"),
        *("5 remainder 2", "5 mod 7", "5 choose 2", "5 factorial", "5 is wrong", "5 not", "5, 6", "5 6", "6 5", "5!"),
        *("about 5", "not 5", "at least 5", "minus 5", "half 5", "apples 5", "--5", "5-6 apples", "5 hours 30 minutes"),
        *("5 apples = 10 halves", "5 because", "$5 off", "5 dollars or 6 dollars", "five", "5 minus 1", "5%"),
    ],
)
def test_a_number_with_something_else_than_a_unit_is_no_number(verifier, answer):
    assert verifier.judge_one(f"<answer>{answer}</answer>", "5") is WRONG


def test_numbers_may_differ_by_a_share_of_the_reference():
    rough = MathVerifier(timeout=20, tolerance=0.01)
    completions = [
        rf"\boxed{{{each}}}" for each in (99, 102, r"\frac{201}{2}", "99 m/s", r"71\sqrt{2}", r"73\sqrt{2}", "x")
    ]
    assert rough.judge(completions, ["100"] * 7) == [RIGHT, WRONG, RIGHT, RIGHT, RIGHT, WRONG, WRONG]
    assert rough.judge_one(r"\boxed{0.001}", "0") is WRONG
    assert MathVerifier().judge_one(r"\boxed{99}", "100") is WRONG
    with pytest.raises(ValueError, match=r"tolerance is a share of the reference, .* got 5. One per cent is 0.01"):
        MathVerifier(tolerance=5)


def test_two_formats_count_only_where_they_are_named():
    assert MathVerifier().judge_one("4 + 3 = 7", "7") is NO_ANSWER
    assert MathVerifier(formats=("boxed", "number")).judge_one("4 + 3 = 7", "7") is RIGHT
    assert MathVerifier(formats=("boxed", "number")).judge_one(r"4 + 3 = \boxed{8}, not 7", "7") is WRONG
    assert MathVerifier(formats=("whole",)).judge_one(" Paris.\n", "paris") is RIGHT
    assert [find_final_answer(text, ("number",)) for text in ("it is -1,000.5 dollars.", "range 3-5", "5%", "no")] == [
        *("-1,000.5", "5", "5%"),
        None,
    ]


@pytest.mark.parametrize("answer", [r"\int x^x dx", r"\int_0^1 x^x dx", r"\int f(x)dx"])
def test_what_a_computer_algebra_system_imports_late_leaves_no_answer_unjudged(verifier, answer):
    assert verifier.judge_one(rf"\boxed{{{answer}}}", "5") is WRONG


def test_a_module_that_a_locked_process_cannot_read_is_the_fault_of_the_answer():
    # `sympy.plotting` is there and not loaded: the reference compares without it.
    late = LateImportBlocker()
    with pytest.raises(LateImportError, match=r"sympy\.plotting"):
        late.find_spec("sympy.plotting")
    assert late.find_spec("no_such_package") is None
    assert judge_or_blame(lambda: late.find_spec("sympy.plotting"), lambda: True) == 0.0


STALLING = [rf"\int \sin(x)^{{{k + 7}}} \cos(x)^{{{k + 9}}} \sqrt{{x+{k}}} dx" for k in range(3)]


def test_stalling_pays_nobody_and_costs_nobody_else():
    quick = [f"x+{k}" for k in range(20)]
    answers = [quick[0], *STALLING, *quick[1:]]
    verdicts = MathVerifier(timeout=1.0, budget=1.0).judge([rf"\boxed{{{each}}}" for each in answers], ["7+x"] * 23)
    assert verdicts == [RIGHT if each == "x+7" else WRONG for each in answers]


@pytest.mark.slow
def test_a_reference_that_takes_too_long_itself_is_told_once_and_not_judged(capsys):
    for _ in range(2):
        assert MathVerifier(timeout=0.5).judge_one(r"\boxed{x+1}", STALLING[0]) is UNJUDGED
    told = capsys.readouterr().err
    assert told.count("to judge an answer can take longer than 0.5 s where the reference is ") == 1


@pytest.mark.parametrize(
    "piece", ["ab ", "of ^{2} ", "million", r"\text{m} / ", "x = ", "1,1,1,", "( ", r"\frac{1}{2} ", "$a$ "]
)
def test_nothing_that_repeats_is_read_twice_as_long_for_every_repetition(piece):
    started = time.process_time()
    for answer in ("5 " + piece * 160, piece * 160 + "5", "5 " + piece * 160 + "!"):
        judge_exactly(answer[:500], "5")
        find_final_answer(rf"the answer is {piece * 2000}. \boxed{{{answer}")
    assert time.process_time() - started < 2
