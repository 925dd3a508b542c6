from types import SimpleNamespace

import torch

from rlcredit.outputs.completion_table import CompletionTable, name_verdict
from rlcredit.tasks.example import Example
from tests.conftest import make_rollout


def rollout_of_two():
    rollout = make_rollout([1.0, 0.0], 2, width=2)
    rollout.mask = torch.ones(2, 2, dtype=torch.bool)
    rollout.tokens = [["4", "2"], ["4", "1"]]
    rollout.sources = ((0, Example("What is 40 + 2?", "42", {})),)
    return rollout


def test_a_row_says_question_answer_verdict_and_reward():
    tokenizer = SimpleNamespace(decode=lambda ids, **_: " What is 40 + 2? ")
    policy = SimpleNamespace(prompt_mask=lambda ids: ids >= 0, tokenizer=tokenizer)
    rows = list(CompletionTable().records(rollout_of_two(), SimpleNamespace(policy=policy)))
    told = [(row["prompt"], row["reference"], row["completion"], row["verdict"], row["reward"]) for row in rows]
    assert told == [("What is 40 + 2?", "42", "42", "right", 1.0), ("What is 40 + 2?", "42", "41", "wrong", 0.0)]


def test_a_completion_without_a_verdict_is_not_wrong():
    rollout = rollout_of_two()
    rollout.judged = torch.tensor([True, False])
    assert [name_verdict(rollout, row) for row in range(2)] == ["right", "unjudged"]
