"""Answers that people and policies write to references of many kinds, right ones and wrong ones."""

import json
from pathlib import Path

import pytest

from rlcredit.verification.verifiers import MathVerifier, Verdict

ANSWERS = json.loads((Path(__file__).parent / "answers_by_kind.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def verifier():
    return MathVerifier(budget=1e9)


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_right_where_it_says_what_the_reference_says(kind, verifier):
    cases = [
        (reference, answer, verdict)
        for reference, answers in ANSWERS[kind].items()
        for verdict in answers
        for answer in answers[verdict]
    ]
    judged = verifier.judge([rf"\boxed{{{answer}}}" for _, answer, _ in cases], [reference for reference, *_ in cases])
    wrong = [(*case, verdict.name) for case, verdict in zip(cases, judged) if verdict is not Verdict(case[2])]
    assert wrong == []
