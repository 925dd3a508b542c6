import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.mathematics.symbolic import judge_symbolically

RIGHT = {
    "No": [
        "The answer is No, because 7 is prime.",
        "\\boxed{\\text{No, since it is odd}}",
        "Answer: No; it diverges.",
        "The answer is no (it is not prime).",
        "\\boxed{\\text{No}!}",
        "Answer: No, it is not.",
    ],
    "\\text{True}": [
        "The answer is true, because 2 is even.",
        "\\boxed{\\text{TRUE}}",
        "Answer: True.",
    ],
    "\\text{undefined}": [
        "\\boxed{\\text{The expression is undefined}}",
        "\\boxed{\\text{not defined}}",
        "\\boxed{\\text{is undefined.}}",
        "\\boxed{f(0) \\text{ is undefined}}",
        "The answer is undefined.",
        "\\boxed{\\text{It is undefined}}",
    ],
    "\\text{DNE}": [
        "\\boxed{\\text{does not exist}}",
        "\\boxed{\\text{Does Not Exist}}",
        "\\boxed{\\text{doesn't exist}}",
        "\\boxed{\\lim_{x\\to 0} f(x) = \\text{DNE}}",
        "\\boxed{\\lim_{x\\to 0} f(x) \\text{ does not exist}}",
        "The answer is DNE.",
        "\\boxed{\\text{No limit exists}}",
        "\\boxed{dne}",
    ],
    "\\text{no solution}": [
        "\\boxed{\\text{The equation has no solution}}",
        "\\boxed{\\text{No solutions exist}}",
        "\\boxed{\\emptyset}",
        "\\boxed{\\text{none}}",
        "\\boxed{x \\in \\emptyset}",
        "\\boxed{\\text{the system has no solutions}}",
        "\\boxed{\\text{There are no solutions.}}",
        "The answer is no solution.",
        "\\boxed{\\text{No Solution}}",
        "\\boxed{\\varnothing}",
        "\\boxed{\\{\\}}",
        "\\boxed{\\text{inconsistent}}",
        "\\boxed{\\text{Solution does not exist}}",
        "\\boxed{\\text{there exists no solution}}",
    ],
    "\\text{None}": [
        "\\boxed{none}",
        "\\boxed{\\text{None.}}",
        "The answer is none.",
        "\\boxed{\\text{There are none}}",
        "\\boxed{\\text{none exist}}",
    ],
    "\\emptyset": [
        "\\boxed{\\text{no solution}}",
        "\\boxed{S = \\emptyset}",
        "\\boxed{∅}",
        "\\boxed{\\text{The empty set}}",
        "\\boxed{\\{ \\}}",
        "\\boxed{\\text{no solutions}}",
    ],
    "no real solutions": [
        "\\boxed{\\text{no real solutions exist}}",
        "\\boxed{\\text{No real roots}}",
        "\\boxed{\\text{The equation has no real solutions}}",
        "\\boxed{\\text{no solution over the reals}}",
        "\\boxed{\\text{no solutions in the real numbers}}",
    ],
}
"""Reference: completions that answer it."""

WRONG = {
    "No": [
        "The answer is No, yes.",
        "\\boxed{\\text{No, or yes}}",
        "\\boxed{\\text{No, but yes}}",
        "\\boxed{\\text{No/Yes}}",
        "\\boxed{\\text{No, if } n > 2}",
        "\\boxed{\\text{No, in some cases}}",
        "\\boxed{\\text{No (maybe yes)}}",
        "The answer is no, maybe.",
        "The answer is yes, not no.",
        "\\boxed{\\text{Not no}}",
        "\\boxed{\\text{No and yes}}",
        "The answer is no, sometimes.",
        "\\boxed{\\text{Unknown}}",
        "\\boxed{\\text{no or yes}}",
        "\\boxed{\\text{nope}}",
        "\\boxed{\\text{number}}",
        "The answer is no. Or yes.",
        "The answer is No. Wait, yes.",
        "\\boxed{\\text{No, not really}}",
        "\\boxed{N}",
        "The answer is no - yes",
        "\\boxed{\\text{No? Yes}}",
        "\\boxed{\\text{Yes, no}}",
    ],
    "\\text{True}": [
        "\\boxed{\\text{True, False}}",
        "\\boxed{\\text{True or False}}",
        "\\boxed{\\text{not false}}",
        "\\boxed{\\text{true, but false}}",
        "\\boxed{T/F}",
        "\\boxed{\\text{Half true}}",
        "\\boxed{\\text{True unless } x = 0}",
        "\\boxed{\\text{True, or it depends}}",
        "\\boxed{\\text{true = false}}",
    ],
    "\\text{undefined}": [
        "\\boxed{1/0}",
        "\\boxed{\\text{defined}}",
        "\\boxed{\\text{undefined or } 5}",
        "\\boxed{\\text{not undefined}}",
        "\\boxed{\\infty}",
        "\\boxed{x}",
        "\\boxed{\\text{never undefined}}",
        "\\boxed{5, \\text{undefined}}",
        "\\boxed{\\text{defined, not undefined}}",
        "\\boxed{\\text{undefined at 0, else } 5}",
    ],
    "\\text{DNE}": [
        "\\boxed{\\text{exists}}",
        "\\boxed{0}",
        "\\boxed{\\infty}",
        "\\boxed{-\\infty}",
        "\\boxed{\\text{DNE or } 0}",
        "\\boxed{\\text{not DNE}}",
        "\\boxed{\\text{does exist}}",
        "\\boxed{\\text{the limit exists}}",
        "\\boxed{\\text{it does not not exist}}",
        "\\boxed{DN}",
        "\\boxed{\\text{limit}}",
        "\\boxed{0, DNE}",
        "\\boxed{DNE = 0}",
        "\\boxed{\\text{no solution}}",
    ],
    "\\text{no solution}": [
        "\\boxed{\\text{no}}",
        "\\boxed{\\text{a solution}}",
        "\\boxed{\\text{not no solution}}",
        "\\boxed{\\text{no solution, } x = 2}",
        "\\boxed{\\{0\\}}",
        "\\boxed{\\text{infinitely many solutions}}",
        "\\boxed{\\text{no unique solution}}",
        "\\boxed{\\text{solution}}",
        "\\boxed{\\text{no integer solution}}",
        "\\boxed{\\text{no solution or infinitely many}}",
        "\\boxed{\\text{one or no solution}}",
        "\\boxed{\\text{nonempty}}",
        "\\boxed{x}",
        "\\boxed{\\text{there is a solution}}",
        "\\boxed{\\text{No solution? } 3}",
    ],
    "\\text{None}": [
        "\\boxed{\\text{one}}",
        "\\boxed{\\text{none or } 1}",
        "\\boxed{\\text{not none}}",
        "\\boxed{0}",
        "\\boxed{\\text{some}}",
    ],
    "\\emptyset": [
        "\\boxed{\\{1\\}}",
        "\\boxed{\\emptyset, 1}",
        "\\boxed{\\text{not empty}}",
        "\\boxed{\\{\\{\\}\\}}",
        "\\boxed{\\text{non-empty set}}",
        "\\boxed{\\emptyset \\text{ or } 1}",
        "\\boxed{\\mathbb{R}}",
    ],
    "no real solutions": [
        "\\boxed{\\text{no imaginary solutions}}",
        "\\boxed{\\text{real}}",
        "\\boxed{\\text{no real solution or } 1}",
        "\\boxed{\\text{not no real solutions}}",
        "\\boxed{\\text{one real solution}}",
    ],
}
"""Reference: completions that answer something else, more than one thing, or nothing."""


def judged(reference, completion):
    answer = find_final_answer(completion)
    return bool(answer) and judge_symbolically(answer, reference) == 1.0


@pytest.mark.parametrize("reference", RIGHT)
def test_the_same_word_or_absence_is_right(reference):
    assert [completion for completion in RIGHT[reference] if not judged(reference, completion)] == []


@pytest.mark.parametrize("reference", WRONG)
def test_doubt_and_another_absence_are_wrong(reference):
    assert [completion for completion in WRONG[reference] if judged(reference, completion)] == []
