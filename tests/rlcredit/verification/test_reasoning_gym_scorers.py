import functools
import json

import pytest
import reasoning_gym
from reasoning_gym.composite import DatasetSpec

from rlcredit.tasks import ReasoningGym
from rlcredit.verification.reasoning_gym_scorers import is_admissible_answer, make_gym_scorer
from rlcredit.verification.verifiers import Verdict

SQUARE = {"question": "", "answer": "x**2 + C", "metadata": {"variable": "x", "integrand": "2*x"}}


@functools.cache
def integrals(name):
    return reasoning_gym.create_dataset(name, size=1)


@pytest.mark.parametrize("name", ["simple_integration", "intermediate_integration"])
@pytest.mark.parametrize("constant", ["C", "K", "c", "c1", "C2", "k", "I", "A0"])
def test_the_constant_of_integration_may_have_any_name(name, constant):
    for answer in (f"x**2 + {constant}", f"{constant} + x**2", f"(x)**2-{constant}"):
        assert is_admissible_answer(name, answer, SQUARE)
        assert integrals(name).score_answer(answer, SQUARE) == 1


REFUSED = [
    "x**2 + K*x",
    "x**2 + K + L",
    "x**2 + K()",
    "x**2 + K.args",
    "x**2 + K(x)",
    "(x + K)**2",
    "K**x",
    "x**2 + Kx",
]


@pytest.mark.parametrize("answer", [*REFUSED, "x**2 + sin", "x**2 + eval", "x**2 + K" + 300 * "(" + 300 * ")"])
def test_a_letter_that_is_no_constant_of_integration_is_refused(answer):
    assert not is_admissible_answer("simple_integration", answer, SQUARE)


def test_parts_of_a_composite_are_asked_by_their_own_rules():
    parts = [DatasetSpec(name, 1, {}) for name in ("gsm_symbolic", "knights_knaves")]
    task = ReasoningGym("composite", {"datasets": parts}, train_size=8, validation_size=1, prompts_per_step=1)
    task.setup()
    assert {each.metadata["source_dataset"] for each in task.train_set} == {"gsm_symbolic", "knights_knaves"}
    for template, verdict in (("{}", Verdict.RIGHT), ("not {}", Verdict.WRONG), ("{} or 3", Verdict.WRONG)):
        answers = [f"<answer>{template.format(each.answer)}</answer>" for each in task.train_set]
        assert task.judge(answers, task.train_set) == [verdict] * 8


def test_a_puzzle_without_a_reference_calls_wrong_what_its_scorer_stumbles_over():
    # boxnet raises where a square is outside of the grid, and no reference can show that the answer is to blame.
    entry = {"answer": "None", "metadata": {"initial_state": {"0.5_0.5": ["box_red"], "0.5_1.5": ["target_red"]}}}
    inside = [("0.5, 0.5", "square[0.5, 1.5]"), ("0.5, 1.5", "target_red")]
    outside = [("0.5, 0.5", "square[1.5, 0.5]")]
    plans = [json.dumps([{f"Agent[{at}]": f"move(box_red, {to})"} for at, to in plan]) for plan in (inside, outside)]
    assert list(map(make_gym_scorer("boxnet", {}), plans, [entry] * 2)) == [1.0, 0.0]
