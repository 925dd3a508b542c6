import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.mathematics.symbolic import judge_symbolically

RIGHT = {
    "12,34,567": [
        "\\boxed{1234567}",
        "\\boxed{12,34,567}",
        "\\boxed{1,234,567}",
        "\\boxed{12, 34, 567}",
        "\\boxed{\\text{Rs. }12,34,567}",
        "\\boxed{₹12,34,567}",
    ],
    "100000": [
        "\\boxed{1,00,000}",
        "The answer is ₹1,00,000.",
        "\\boxed{1{,}00{,}000}",
        "\\boxed{1,00,000.00}",
        "\\boxed{x = 1,00,000}",
        "\\boxed{1 \\text{ lakh}}",
        "\\boxed{1,00,000 \\text{ rupees}}",
        "Answer: Rs. 1,00,000",
    ],
    "10,20,300": [
        "\\boxed{10, 20, 300}",
        "\\boxed{10,20,300}",
    ],
    "10, 20, 300": [
        "\\boxed{10,20,300}",
        "\\boxed{20, 10, 300}",
    ],
    "\\$3.50": [
        "\\boxed{3 \\text{ dollars and } 50 \\text{ cents}}",
        "\\boxed{350 \\text{ cents}}",
        "\\boxed{\\$3.5}",
        "\\boxed{3.50}",
        "\\boxed{3.50 \\text{ USD}}",
        "\\boxed{US\\$3.50}",
        "The answer is $3.50.",
        "The answer is 3 dollars 50 cents",
    ],
    "75 \\text{ cents}": [
        "\\boxed{75}",
        "\\boxed{\\$0.75}",
        "\\boxed{75 \\text{ cents}}",
        "\\boxed{75¢}",
    ],
    "2.5 \\text{ hours}": [
        "\\boxed{2 \\text{ hours } 30 \\text{ minutes}}",
        "\\boxed{150 \\text{ minutes}}",
        "\\boxed{2.5}",
        "\\boxed{2\\frac{1}{2} \\text{ hours}}",
        "The answer is 2 hours and 30 minutes.",
        "\\boxed{2 \\text{ h } 30 \\text{ min}}",
    ],
    "2 \\text{ hours } 30 \\text{ minutes}": [
        "\\boxed{2.5 \\text{ hours}}",
        "\\boxed{150 \\text{ minutes}}",
        "\\boxed{2 hours and 30 minutes}",
        "\\boxed{2\\text{ h }30\\text{ min}}",
    ],
    "-12": [
        "\\boxed{1 - 6 - 7 = -12}",
        "\\boxed{-12}",
        "\\boxed{- 12}",
        "\\boxed{-\\sqrt{144}}",
        "\\boxed{-24/2}",
    ],
    "1023": [
        "\\boxed{1,023}",
    ],
    "-1": [
        "\\boxed{i^2}",
        "\\boxed{e^{i\\pi}}",
    ],
    "\\frac{7}{2}": [
        "\\boxed{3\\frac{1}{2}}",
        "\\boxed{3 + \\frac{1}{2}}",
        "\\boxed{3 + \\frac{1}{1 + \\frac{1}{1}}}",
        "\\boxed{3.5}",
    ],
    "0.00001": [
        "\\boxed{10^{-5}}",
        "\\boxed{1e-05}",
        "\\boxed{1 \\times 10^{-5}}",
    ],
    "5": [
        "\\boxed{5 \\text{ pairs}}",
        "\\boxed{5 \\text{ couples}}",
        "\\boxed{5 \\text{ ways}}",
        "\\boxed{5 \\text{ units}}",
        "\\boxed{5 \\text{ zones}}",
        "\\boxed{5 \\text{ tennis balls}}",
        "\\boxed{5 \\text{ centers}}",
    ],
}
"""Reference: completions that answer it."""

WRONG = {
    "\\frac{5}{6}": [
        "\\boxed{\\frac{1}{2} + \\frac{1}{3}}",
        "\\boxed{\\frac{2+3}{6}}",
    ],
    "1234567": [
        "\\boxed{12,34,56,7}",
        "\\boxed{123,45,67}",
        "\\boxed{12,345,67}",
        "\\boxed{12,34,567,8}",
        "\\boxed{12, 34, 567}",
        "\\boxed{(12,34,567)}",
        "\\boxed{12,34,568}",
        "\\boxed{12.34.567}",
    ],
    "100000": [
        "\\boxed{1,00,00}",
        "\\boxed{10,00,00}",
        "\\boxed{1,00,0000}",
        "\\boxed{1,00,000,000}",
        "\\boxed{1,0,000}",
    ],
    "\\$3.50": [
        "\\boxed{3.50 \\text{ cents}}",
        "\\boxed{350}",
        "\\boxed{3 \\text{ dollars or } 50 \\text{ cents}}",
        "\\boxed{3 \\text{ dollars}}",
        "\\boxed{50 \\text{ cents}}",
        "\\boxed{3.50 \\text{ euros}}",
        "\\boxed{\\$3 \\text{ and } \\$50}",
        "\\boxed{3 \\text{ dollars and } 51 \\text{ cents}}",
        "\\boxed{3.50\\%}",
        "\\boxed{3 \\text{ dollars, } 50 \\text{ euros}}",
        "\\boxed{\\$3 - \\$50}",
    ],
    "75 \\text{ cents}": [
        "\\boxed{75 \\text{ dollars}}",
        "\\boxed{0.75 \\text{ cents}}",
        "\\boxed{0.75}",
        "\\boxed{\\$75}",
    ],
    "2.5 \\text{ hours}": [
        "\\boxed{2 \\text{ hours } 50 \\text{ minutes}}",
        "\\boxed{150 \\text{ seconds}}",
        "\\boxed{150}",
        "\\boxed{2.5 \\text{ minutes}}",
        "\\boxed{2 \\text{ hours}}",
        "\\boxed{30 \\text{ minutes}}",
    ],
    "5": [
        "\\boxed{5 \\text{ sixes}}",
        "\\boxed{5 \\text{ nineties}}",
        "\\boxed{5 \\text{ twenties}}",
        "\\boxed{5 \\text{ zeros}}",
        "\\boxed{5 \\text{ grand}}",
        "\\boxed{5 \\text{ myriads}}",
        "\\boxed{5 \\text{ ones}}",
        "\\boxed{5 \\text{ doubles}}",
        "\\boxed{5 \\text{ thirteens}}",
        "\\boxed{5 \\text{ threes}}",
        "\\boxed{5 \\text{ eights}}",
        "\\boxed{5 \\text{ elevens}}",
        "\\boxed{5 \\text{ millions}}",
        "\\boxed{5 \\text{ thousandths}}",
        "\\boxed{5 \\text{ lakhs}}",
        "\\boxed{5 \\text{ crores}}",
        "\\boxed{5 \\text{ percents}}",
        "\\boxed{5 \\text{ halves}}",
        "\\boxed{5 \\text{ quarters}}",
        "\\boxed{5 \\text{ thirds}}",
        "\\boxed{5 \\text{ ten apples}}",
        "\\boxed{5 \\text{ seven hundred}}",
        "\\boxed{5 \\text{ dozen eggs}}",
        "\\boxed{5 \\text{ gross}}",
        "\\boxed{5 \\text{ trillions}}",
        "\\boxed{5 \\text{ fifties}}",
        "\\boxed{5 \\text{ hundreds of apples}}",
        "\\boxed{5 \\text{ times}}",
        "\\boxed{5 \\text{ squares}}",
    ],
    "1": [
        "\\boxed{1 \\text{ eleven}}",
        "\\boxed{1 \\text{ million}}",
        "\\boxed{1 \\text{ score}}",
        "\\boxed{1 \\text{ hundred}}",
        "\\boxed{1 \\text{ grand}}",
        "\\boxed{1 \\text{ myriad}}",
        "\\boxed{1 \\text{ half}}",
        "\\boxed{1 \\text{ thirteen}}",
        "\\boxed{1 \\text{ fifty}}",
        "\\boxed{1 \\text{ double}}",
        "\\boxed{1 \\text{ zero}}",
        "\\boxed{1 \\text{ or}}",
        "\\boxed{1 \\text{ negative}}",
    ],
}
"""Reference: completions that answer something else, more than one thing, or nothing."""


def judged(reference, completion):
    answer = find_final_answer(completion)
    return bool(answer) and judge_symbolically(answer, reference) == 1.0


@pytest.mark.parametrize("reference", RIGHT)
def test_the_same_amount_is_right(reference):
    assert [completion for completion in RIGHT[reference] if not judged(reference, completion)] == []


@pytest.mark.parametrize("reference", WRONG)
def test_another_amount_is_wrong(reference):
    assert [completion for completion in WRONG[reference] if judged(reference, completion)] == []
