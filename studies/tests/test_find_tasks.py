"""Levels of difficulty as task files."""

import pytest

from rlcredit.tasks import ReasoningGym
from rlcredit.tasks.example import Shot
from rlcredit.tasks.held_out_split import is_held_out
from studies.smollm2 import find_tasks


@pytest.mark.parametrize("level", find_tasks.LEVELS)
@pytest.mark.parametrize("way", ["told", "shown"])
def test_every_level_is_a_task(level, way):
    written = find_tasks.make_level_task(*find_tasks.LEVELS[level], way, questions=2)["data"]["init_args"]
    shots = [Shot(**shot) for shot in written.pop("shots", [])]
    task = ReasoningGym(**written, shots=shots)
    task.setup()
    (prompt, *_) = task.held_out_prompts(0, 1).questions
    assert "The answer is" in str(prompt)
    assert len(shots) == (2 if way == "shown" else 0)
    assert not any(is_held_out(shot.question) for shot in shots)


def test_a_row_says_what_was_found():
    scores = {"pass_at_1": {"mean": 0.25, "low": 0.1, "high": 0.5}, "tokens": 9.0, "truncated": 0.0, "no_answer": 0.5}
    row = find_tasks.make_level_row("sum of 2", "told", {"base": scores})
    assert (row["pass_at_1"], row["low"], row["high"], row["no_answer"]) == ("0.2500", "0.1000", "0.5000", "0.5000")
