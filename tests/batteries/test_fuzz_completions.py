"""A thousand completions as no sane policy writes them; tests/batteries/fuzz_completions.py tries more."""

import random

import pytest
from fuzz_completions import GoldQuestions, count_judging_outcomes, make_fuzzed_tasks

from rlcredit.tasks import Example
from rlcredit.verification.verifiers import Verdict

NAMES = ("chain_sum", "countdown", "n_queens")


@pytest.mark.slow
def test_no_completion_raises_or_acts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = 0
    for name, task in make_fuzzed_tasks(NAMES):
        counted = count_judging_outcomes(task, 256, random.Random(name), tmp_path / "pwned")
        assert counted["raised"] == counted["no verdict"] == counted["executed"] == 0, name
        tried += sum(counted.values())
    assert tried == 1024
    assert list(tmp_path.iterdir()) == []


class Stumbling(GoldQuestions):
    """Mathematics that stumbles over one answer."""

    def __init__(self):
        super().__init__()
        self.verifier._judge_at_once = self.look

    def look(self, answer, reference):
        return Verdict.RIGHT if {"5": True, "6": False}[answer] else Verdict.WRONG


def test_a_completion_that_makes_the_trainer_stumble_is_wrong_and_its_neighbours_are_judged():
    examples = [Example("", reference, {}) for reference in ("5", "5", "5", "seven")]
    texts = ["\\boxed{5}", "\\boxed{five}", "\\boxed{6}", "\\boxed{eight}"]
    assert Stumbling().judge(texts, examples) == [Verdict.RIGHT, Verdict.WRONG, Verdict.WRONG, Verdict.UNJUDGED]
