import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.mathematics.symbolic import judge_symbolically

RIGHT = {
    "7:30 PM": [
        "The answer is 7:30 PM.",
        "The answer is 7:30 p.m.",
        "\\boxed{19:30}",
        "\\boxed{7:30 \\text{ pm}}",
        "\\boxed{7\\!:\\!30 \\text{ PM}}",
        "\\boxed{07:30 PM}",
        "\\boxed{7:30\\text{ P.M.}}",
    ],
    "7:30": [
        "\\boxed{07:30}",
        "\\boxed{7:30 \\text{ a.m.}}",
        "\\boxed{7:30}",
        "The answer is 7:30.",
    ],
    "7 \\text{ PM}": [
        "\\boxed{7:00 PM}",
        "\\boxed{7 \\text{ p.m.}}",
        "\\boxed{19:00}",
    ],
    "January 15, 2023": [
        "\\boxed{2023-01-15}",
        "\\boxed{15 January 2023}",
        "\\boxed{\\text{January 15, 2023}}",
        "The answer is Jan 15, 2023.",
        "The answer is Jan. 15, 2023.",
        "The answer is January 15th, 2023.",
        "\\boxed{01/15/2023}",
        "The answer is the 15th of January 2023",
        "Answer: Sunday, January 15, 2023",
    ],
    "2023-01-15": [
        "\\boxed{\\text{January 15, 2023}}",
        "\\boxed{2023/01/15}",
        "\\boxed{15/01/2023}",
        "\\boxed{2023-1-15}",
    ],
    "March 5": [
        "\\boxed{\\text{5 March}}",
        "\\boxed{\\text{March 5th}}",
        "The answer is March 5, 2024.",
    ],
}
"""Reference: completions that answer it."""

WRONG = {
    "7:30 PM": [
        "\\boxed{7:30 AM}",
        "\\boxed{07:30}",
        "\\boxed{7:31 PM}",
        "\\boxed{7:30 AM or PM}",
        "\\boxed{730}",
        "\\boxed{7.5}",
        "\\boxed{7:30}",
        "\\boxed{7:30 PM, 7:30 AM}",
        "\\boxed{7/30}",
    ],
    "7:30": [
        "\\boxed{19:30}",
        "\\boxed{7:03}",
        "\\boxed{7/30}",
        "\\boxed{7.5}",
        "\\boxed{7:30 or 8:30}",
        "\\boxed{7}",
        "\\boxed{30:7}",
    ],
    "3:20": [
        "\\boxed{15:20}",
        "\\boxed{3/20}",
        "\\boxed{6:40}",
    ],
    "January 15, 2023": [
        "\\boxed{\\text{January 15, 2024}}",
        "\\boxed{\\text{January 16, 2023}}",
        "\\boxed{2023-15-01}",
        "\\boxed{\\text{January 15}}",
        "\\boxed{\\text{February 15, 2023}}",
        "\\boxed{\\text{January 2023}}",
        "\\boxed{2023}",
        "\\boxed{\\text{January 15 or 16, 2023}}",
    ],
    "2023-01-15": [
        "\\boxed{2007}",
        "\\boxed{2023-01-16}",
        "\\boxed{01-15}",
        "\\boxed{\\text{January 15}}",
        "\\boxed{\\text{June 15, 2023}}",
    ],
    "March 5": [
        "\\boxed{5}",
        "\\boxed{\\text{March}}",
        "\\boxed{\\text{May 5}}",
        "\\boxed{\\text{March 6}}",
        "\\boxed{5/3}",
    ],
    "3-2": [
        "\\boxed{1}",
        "\\boxed{2-3}",
        "\\boxed{3-2 \\text{ or } 2-3}",
    ],
}
"""Reference: completions that answer something else, more than one thing, or nothing."""


def judged(reference, completion):
    answer = find_final_answer(completion)
    return bool(answer) and judge_symbolically(answer, reference) == 1.0


@pytest.mark.parametrize("reference", RIGHT)
def test_a_date_or_time_in_another_notation_is_right(reference):
    assert [completion for completion in RIGHT[reference] if not judged(reference, completion)] == []


@pytest.mark.parametrize("reference", WRONG)
def test_another_date_or_time_is_wrong(reference):
    assert [completion for completion in WRONG[reference] if judged(reference, completion)] == []
