import time

import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.mathematics.symbolic import judge_symbolically

RIGHT = {
    "42": [
        "The answer is:\n- 42",
        "Answer:\n* 42",
        "Answer:\n> 42",
        "The final answer is:\n\n```\n42\n```",
        'The answer is "42".',
        "The answer is:\n“42”",
        "Answer: '42'",
        "The answer is\n\\begin{align*}\nx &= 42\n\\end{align*}",
        "The answer is\n$$\\begin{aligned} x &= 40 + 2 \\\\ &= 42 \\end{aligned}$$",
        "\\boxed{\\begin{aligned} x &= 42 \\end{aligned}}",
        "Answer:\n\\[\n42\n\\]",
        '{"answer": 42}',
        '```json\n{"answer": "42"}\n```',
        '{"reasoning": "x", "final_answer": 42}',
        "**Answer**: 42",
        "**Final Answer:**\n\n- **42**",
        "<answer>The answer is 42</answer>",
        "#### The answer is 42",
        "\\boxed{\\text{The final answer is: }42}",
        "$\\boxed{\\text{Answer: 42}}$",
        "\\(\\text{The answer is } 42\\)",
        "\\[\\mathbf{\\text{The answer is }} 42\\]",
        "\\[\\text{The answer is } 42.\\]",
        "\\text{So the answer is } x = 42.",
        "\\boxed{=42}",
        "\\boxed{= 42 \\text{ apples}}",
        "The answer is: = $42$",
        "<answer> = 42 </answer>",
        "The answer is 42. No other value works.",
        "The answer is 42. Or equivalently 84/2.",
        "The answer is 42.\n\nNo further steps.",
        "Answer: `42`.",
        "The answer is ```42```.",
        "Answer:\n```math\n42\n```",
        "The answer is **42**.\nOrange.",
        "\\[ \\boxed{\\text{The answer is } 42} \\]",
        "\\begin{align*}\n\\text{Answer: } &42\n\\end{align*}",
        "The answer is _42_.",
        "The answer is:\n\n• 42",
        "Answer = 42",
        "\\boxed{\\quad = 42}",
        "<answer>\n```\n42\n```\n</answer>",
        "\\boxed{5} is wrong. \\boxed{42}",
        "The answer is 42.",
    ],
    "5, 6": [
        "Answer:\n- 5\n- 6",
        "The answer is:\n> 5\n> 6",
        "\\boxed{\\begin{aligned} x &= 5 \\\\ x &= 6 \\end{aligned}}",
    ],
    "9": [
        "\\boxed{\\sqrt{81}}",
        "\\boxed{3 \\cdot 3}",
        "\\boxed{18/2}",
        "\\boxed{4 + 5 = 9}",
        "\\boxed{9.0}",
        "\\boxed{|-9|}",
        "\\boxed{-(-9)}",
        "\\boxed{10 - 1 = 9}",
        "\\boxed{x = 9}",
        "\\boxed{x = 4 + 5 = 9}",
        "\\boxed{9^1}",
        "\\boxed{3 \\times 3 = 9}",
        "<thoughts>\\boxed{8}</thoughts>The answer is 9.",
        "<THINK>The answer is 8.</THINK>The answer is 9.",
        "<scratchpad>\\boxed{8}</scratchpad>\\boxed{9}",
        "<|channel|>analysis<|message|>\\boxed{8}<|end|><|start|>assistant<|channel|>final<|message|>\\boxed{9}",
        "<Reasoning>\\boxed{8}</Reasoning> #### 9",
    ],
}
"""Reference: completions that answer it."""

WRONG = {
    "42": [
        "The answer is:\n- 42\n- 43",
        "Answer:\n```\n42\n43\n```",
        "The answer is 42. No, 43.",
        "The answer is 42.\nWait, it is 43.",
        "The answer is 42. Or 43.",
        "The answer is 42.\n\nOr perhaps 43.",
        '{"answer": 42, "answer": 43}',
        "Answer:\n```\n```",
        "The answer is 42. Maybe 43.",
        "The answer is 42. Actually, it is 43.",
        "The answer is:\n> 42 or 43",
        '{"answer": 43}',
        '{"answer": [42, 43]}',
        '{"answer": "42 or 43"}',
        "\\boxed{\\text{The answer is } 42 \\text{ or } 43}",
        "\\boxed{\\begin{aligned} x &= 42 \\\\ x &= 43 \\end{aligned}}",
        'The answer is "not 42"',
        'The answer is "42 or 43"',
        "\\boxed{= 42 = 43}",
        "\\boxed{= = 42}",
        "\\boxed{\\approx 42}",
        "\\boxed{\\ne 42}",
        "\\boxed{\\text{about } 42}",
        "The answer is ≈ 42",
        "\\[ \\text{The answer is } 42 \\text{ or } 43 \\]",
        "\\[ \\text{The answer is about } 42 \\]",
        "The answer is at most 42",
        "\\boxed{42 \\Rightarrow 43}",
        "\\boxed{> 42}",
        "\\boxed{\\geq 42}",
        "Answer: what is 40 + 2?",
        "The answer is 40 + 2.",
        "\\boxed{40+2}",
        "\\boxed{\\text{The answer is not }42}",
        "The answer is one of 41, 42, 43.",
        "\\boxed{42, 43}",
        "\\boxed{42/43}",
        "\\boxed{42 ~ 43}",
        "\\boxed{42 - 43}",
        "\\boxed{42.43}",
        "\\boxed{41 < 42 < 43}",
        "\\boxed{42?}",
        "\\boxed{\\text{probably } 42}",
        "\\boxed{x = 42, y = 43}",
        "\\boxed{x = 42 \\text{ or } x = 43}",
        "The answer is 42 (43).",
        "\\boxed{42 (43)}",
        "\\boxed{42 [43]}",
        "\\boxed{42 \\{43\\}}",
        "\\boxed{42^{43}}",
        "\\boxed{\\overset{43}{42}}",
        "\\boxed{\\frac{42}{43}}",
        "\\boxed{42\\quad 43}",
        "\\boxed{42\\\\43}",
        "The answer is\n42 or 43",
        "Answer:\n42 or 43",
        "\\boxed{12 ou 42}",
        "\\boxed{42 y 43}",
        "\\boxed{42 и 43}",
        "\\boxed{42 и}",
        "\\boxed{keine 42}",
        "\\boxed{42或43}",
        "\\boxed{42 \\text{ und } 43}",
        "\\boxed{42 fois}",
        "\\boxed{42 \\text{ menos}}",
        "\\boxed{no 42}",
        "\\boxed{pas 42}",
        "\\boxed{\\text{entre } 42 \\text{ et } 43}",
        "\\boxed{42 \\text{ oder mehr}}",
        "\\boxed{約42}",
        "\\boxed{42 \\text{ plus}}",
        "\\boxed{42 \\text{ ish}}",
    ],
    "9": [
        "<THINK>\\boxed{9}</THINK> I cannot say.",
        "<thoughts>\\boxed{9}",
        "<scratchpad>The answer is 9.</scratchpad>",
        "<Thinking>The answer is 9.</Thinking>The answer is 8.",
        "<|begin_of_thought|>\\boxed{9}<|end_of_thought|> Done.",
        "<|channel|>analysis<|message|>\\boxed{9}",
        "\\boxed{10-1}",
        "\\boxed{4 + 5}",
        "\\boxed{3(1+2)}",
        "\\boxed{2\\cdot 4 + 1}",
        "\\boxed{(4+5)}",
        "\\boxed{\\frac{4+5}{1}}",
        "\\boxed{9 + 0}",
        "\\boxed{x - x + 9}",
        "\\boxed{9x/x}",
        "\\boxed{9\\sin^2 t + 9\\cos^2 t}",
        "\\boxed{9=9}",
        "\\boxed{x = 4 + 5}",
        "\\boxed{4+5 \\text{ apples}}",
        "\\boxed{4 + 5 = 10 = 9}",
        "\\boxed{3 + 5 = 9}",
        "\\boxed{\\sqrt{80+1}}",
        "The answer is 4 plus 5.",
        "\\boxed{\\text{4 plus 5}}",
        "\\boxed{4 + 5 =}",
        "\\boxed{4+5=?}",
        "Answer: 4 + 5 = ?",
        "\\boxed{\\sum_{i=1}^{9} 1}",
        "\\boxed{|4-13|}",
        "\\boxed{9\\cdot\\frac{t}{t}}",
        "\\boxed{10 \\pm 1}",
    ],
}
"""Reference: completions that answer something else, more than one thing, or nothing."""


def judged(reference, completion):
    answer = find_final_answer(completion)
    return bool(answer) and judge_symbolically(answer, reference) == 1.0


@pytest.mark.parametrize("reference", RIGHT)
def test_an_answer_is_found_where_it_is_stated(reference):
    assert [completion for completion in RIGHT[reference] if not judged(reference, completion)] == []


@pytest.mark.parametrize("reference", WRONG)
def test_hedges_questions_and_thoughts_state_no_single_answer(reference):
    assert [completion for completion in WRONG[reference] if judged(reference, completion)] == []


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The answer is:\n- 5\n- 6", "5, 6"),
        ("Answer:\n```python\n42\n```", "42"),
        (r"\[ \text{The answer is } (J) \]", "(J)"),
        (r"The answer is \begin{align*}" + "\n" + r"x &= 2 + 3 \\ &= 5" + "\n" + r"\end{align*}", "x = 2 + 3 = 5"),
        (r'{"answer": "\\frac{1}{2}", "sure": true}', r"\frac{1}{2}"),
        ("The answer is 7. No, it is 5.", "7. No, it is 5"),
        ("The answer is Jan. 5.", "Jan. 5"),
    ],
)
def test_a_statement_is_read_to_its_end(completion, answer):
    assert find_final_answer(completion) == answer


@pytest.mark.parametrize(
    "piece",
    [
        *("\\text{answer ", "answer:\n", "Answer: $\n", "\n or", "- 5\n", "```\n", '"answer": ', "\\[ answer: ", "A. "),
        *("\\begin{align}", "\n", "$", "> ", "No. ", "= "),
    ],
)
def test_reading_a_statement_takes_linear_time(piece):
    started = time.process_time()
    for text in (piece * (100_000 // len(piece)), "The answer is " + piece * (100_000 // len(piece)) + " or 5"):
        find_final_answer(text)
        find_final_answer(rf"\boxed{{{text}}}")
    assert time.process_time() - started < 2
