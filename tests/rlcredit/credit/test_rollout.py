from dataclasses import fields

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.rollout import (
    FACT_FIELDS,
    MEANINGFUL_FIELDS,
    NEUTRAL_VALUES,
    NOTE_FIELDS,
    ROLLOUT_FIELDS,
    Rollout,
    concatenate_rollouts,
    positional_progress,
)
from tests.callbacks.rollouts import THREE_AND_TWO, episodes_of
from tests.conftest import make_rollout


def test_rows_and_rounds_are_put_together_as_they_were_taken_apart():
    whole = make_rollout()
    parts = [whole.select_minibatch(number, 2) for number in (0, 1)]
    again = concatenate_rollouts(parts)
    for name in ("mask", "old_logprobs", "entropy", "rewards", "advantages", "signal", "completion_ids"):
        assert torch.equal(getattr(again, name), getattr(whole, name)), name
    assert again.tokens == whole.tokens
    assert whole.select_minibatch(0, 1) is whole


def test_episodes_of_other_lengths_and_numbers_of_turns_are_put_together():
    short, long = episodes_of(["ab", "a"], [1.0, 0.0]), episodes_of(["abXYcZd", "aXb"], [0.0, 1.0])
    whole = concatenate_rollouts([short, long])
    assert whole.mask.shape == (4, 7)
    assert whole.turn.tolist()[:2] == [[0, 0, -1, -1, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1]]
    assert whole.turn.tolist()[2:] == [[0, 0, -1, -1, 1, -1, 2], [0, -1, 1, -1, -1, -1, -1]]
    assert whole.turn_rewards.tolist() == [[1, 0, 0], [1, 0, 0], [1, 2, 3], [1, 2, 0]]
    assert whole.states.tolist() == [[0, -1, -1], [10, -1, -1], [0, 1, 2], [10, 11, -1]]
    assert [whole.list_texts(row) for row in (0, 2)] == [["a", "b"], ["a", "b", "c", "d"]]
    part = whole.select_minibatch(1, 2)
    for name in ("mask", "turn", "turn_rewards", "states", "completion_ids", "old_logprobs"):
        assert torch.equal(getattr(part, name), getattr(long, name)), name
    assert part.tokens == long.tokens
    again = concatenate_rollouts([whole.select_minibatch(0, 2)] * 2)
    assert again.turn_rewards.tolist() == [[1]] * 4  # the third turn is nobody's


def test_the_positional_clock_ends_at_one():
    assert_close(positional_progress(THREE_AND_TWO), torch.tensor([[1 / 3, 2 / 3, 1.0], [0.5, 1.0, 1.0]]))
    progress = episodes_of(["abXc"], [1.0], group_size=1).progress
    assert_close(progress, torch.tensor([[1 / 3, 2 / 3, 1.0, 1.0]]))


def test_prompt_tokens_have_no_place_in_the_ledger():
    rollout = make_rollout()
    shapes = {getattr(rollout, name).shape for name in ("mask", "signal", "plan_mask", "advantages", "old_logprobs")}
    assert shapes == {rollout.completion_ids.shape}


def test_the_empty_stack_is_reinforce(rollout):
    assert_close(rollout.advantages, rollout.rewards[:, None].expand(8, 6))
    assert_close(rollout.signal, -rollout.old_logprobs)
    assert not rollout.plan_mask.any()
    assert rollout.sepa_lambda == 0
    assert rollout.logprobs is rollout.old_logprobs


def test_every_field_is_either_a_fact_or_in_the_ledger():
    assert {field.name for field in fields(Rollout)} == ROLLOUT_FIELDS | NOTE_FIELDS
    assert FACT_FIELDS.isdisjoint(NEUTRAL_VALUES)
    assert MEANINGFUL_FIELDS < ROLLOUT_FIELDS


def test_a_ledger_is_its_own(rollout):
    rollout.advantages = torch.zeros(8, 6)
    assert rollout.rewards.sum() == 2


def test_what_is_neutral_follows_what_it_is_made_of_until_it_is_written(rollout):
    signal, written = rollout.signal, torch.ones(8, 6)
    rollout.rewards = rollout.rewards - 0.25
    assert_close(rollout.advantages, rollout.rewards[:, None].expand(8, 6))
    assert rollout.signal is signal
    part = rollout.select_rows(torch.arange(4))
    rollout.advantages = written
    rollout.rewards = rollout.rewards + 1
    assert rollout.advantages is written
    assert rollout.unwritten == NEUTRAL_VALUES.keys() - {"rewards", "advantages"}
    part.rewards = torch.zeros(4)
    assert not part.advantages.any()
    rollout.old_logprobs, rollout.correct = -written, torch.zeros(8)
    assert torch.equal(rollout.signal, written)
    assert rollout.rewards.any(), "rewards were written"
    assert not rollout.copy_with_neutral_ledger().advantages.any()


def given(**changed):
    """What a rollout of two completions of up to three tokens is made of, with some of it changed."""
    per_token = torch.zeros(2, 3)
    return {
        "step": 0,
        "group_size": 2,
        "prompt_ids": torch.ones(2, 4, dtype=torch.long),
        "completion_ids": torch.ones(2, 3, dtype=torch.long),
        "mask": torch.ones(2, 3, dtype=torch.bool),
        "old_logprobs": per_token,
        "entropy": per_token,
        "correct": torch.zeros(2),
        "tokens": [["a", "b", "c"], ["a"]],
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"entropy": torch.zeros(2, 2)},
            "entropy has shape (2, 2), expected (2, 3), one value per token; mask has shape",
        ),
        ({"old_logprobs": torch.zeros(3)}, "old_logprobs has shape (3,), expected (2, 3), one value per token"),
        ({"ref_logprobs": torch.zeros(2, 4)}, "ref_logprobs has shape (2, 4), expected (2, 3)"),
        ({"correct": torch.zeros(2, 1)}, "correct has shape (2, 1), expected (2,), one value per completion"),
        ({"judged": torch.zeros(3)}, "judged has shape (3,), expected (2,), one value per completion"),
        (
            {"prompt_ids": torch.ones(1, 4)},
            "prompt_ids has shape (1, 4), expected (2, 4), one value per token of a prompt",
        ),
        ({"prompt_ids": torch.tensor(1)}, "prompt_ids has shape (), expected (2, 1)"),
        ({"mask": torch.ones(2, 3)}, "mask is torch.float32 of shape (2, 3), expected torch.bool of shape (B, T)"),
        (
            {"mask": torch.ones(3, dtype=torch.bool)},
            "mask is torch.bool of shape (3,), expected torch.bool of shape (B, T)",
        ),
        ({"group_size": 3}, "group_size is 3, expected a divisor of the 2 completions."),
        ({"group_size": 0}, "group_size is 0, expected a divisor of the 2 completions."),
        ({"tokens": [["a"]]}, "tokens has 1 lists of up to 1 texts, expected 2 of at most 3, one text per token."),
        ({"tokens": [["a"] * 4, []]}, "tokens has 2 lists of up to 4 texts, expected 2 of at most 3"),
    ],
)
def test_a_field_of_another_shape_is_refused_by_name(changed, message):
    Rollout(**given())
    with pytest.raises(ValueError, match=r"^Rollout: ") as error:
        Rollout(**given(**changed))
    assert message in str(error.value)


def test_rewards_of_the_task_stand_beside_the_verdicts():
    rollout = make_rollout([1.0, 0.0, 0.0, 1.0], group_size=2)
    flat = rollout.rewards
    assert torch.equal(flat, rollout.correct)
    rollout.task_rewards = torch.tensor([1.5, -2.0, 0.3, 0.9])
    rollout.judged = torch.tensor([True, True, True, False])
    assert torch.equal(rollout.rewards, rollout.task_rewards)
    assert torch.equal(rollout.returns, rollout.task_rewards[:, None].expand(rollout.mask.shape))
    assert rollout.advantages[:, 0].tolist() == pytest.approx([1.5, -2.0, 0.3, 0.0])
    assert rollout.values[:, 0].tolist() == pytest.approx([-2.0, 1.5, 0.0, 0.3])
    rollout.rewards = rollout.rewards - 1  # as an operator shapes them
    assert rollout.given_rewards[:3].tolist() == pytest.approx([1.5, -2.0, 0.3])
    assert rollout.correct.tolist() == [1, 0, 0, 1]
    fresh = rollout.copy_with_neutral_ledger()
    assert torch.equal(fresh.rewards, rollout.task_rewards)
    joined = concatenate_rollouts([fresh, fresh])
    assert joined.rewards.tolist() == pytest.approx([1.5, -2.0, 0.3, 0.9] * 2)
    assert joined.select_rows(torch.tensor([2, 3])).task_rewards.tolist() == pytest.approx([0.3, 0.9])


def test_rewards_of_another_shape_are_refused():
    rollout = make_rollout([1.0, 0.0], group_size=2)
    given = {name: getattr(rollout, name) for name in FACT_FIELDS}
    with pytest.raises(ValueError, match=r"task_rewards has shape \(3,\), expected \(2,\)"):
        Rollout(**{**given, "task_rewards": torch.zeros(3)})
