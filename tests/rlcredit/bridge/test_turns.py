"""Turns of episodes that other trainers have played: numbers, rewards, and what they act on."""

import pytest
import torch

from callbacks import GRPO
from rlcredit.bridge import assign_credit, load_stack
from rlcredit.bridge.episode_facts import hash_observations, read_turn_numbers
from rlcredit.bridge.nemo_rl import CreditAdvantageEstimator
from rlcredit.bridge.verl import assign_verl_credit
from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from rlcredit.formulas.turns import spread_turns


class Remaining(CreditOperator, reads="turn turn_rewards", writes="advantages"):
    """Give every turn what it and those behind it earn."""

    def assign(self, rollout):
        """Sum from behind."""
        returns = rollout.turn_rewards.flip(-1).cumsum(-1).flip(-1)
        rollout.advantages = spread_turns(returns, rollout.turn)
        return {}


class Visits(CreditOperator, reads="turn states", writes="advantages"):
    """Give every turn the number of turns of the batch that act on what it acts on."""

    def assign(self, rollout):
        """Compare all pairs."""
        same = rollout.states[..., None, None] == rollout.states
        rollout.advantages = spread_turns(same.sum((-1, -2)).float(), rollout.turn)
        return {}


MASK = torch.tensor([[0, 1, 1, 0, 1], [0, 1, 0, 1, 0], [1, 1, 0, 0, 0]])
IDS = torch.tensor([[0, 5, 5, 9, 6], [0, 5, 9, 6, 0], [5, 5, 0, 0, 0]])


def give(**changed):
    """Three episodes of one group, of two turns, two and one; both environments say 9."""
    return {"mask": MASK, "rewards": [1.0, 0.5, 0.0], "groups": [0, 0, 0], "completion_ids": IDS, **changed}


def test_one_reward_is_that_of_the_last_turn_and_given_ones_add_up_to_it():
    outcome = assign_credit([Remaining()], **give(turn_rewards=[None] * 3))
    assert outcome.tolist() == [[0, 1, 1, 0, 1], [0, 0.5, 0, 0.5, 0], [0, 0, 0, 0, 0]]
    lists = assign_credit([Remaining()], **give(turn_rewards=[[0.25, 0.75], [0.5], [0.0]]))
    assert lists.tolist() == [[0, 1, 1, 0, 0.75], [0, 0.5, 0, 0, 0], [0, 0, 0, 0, 0]]
    table = torch.tensor([[0.25, 0.0, 9.0], [0.5, 9.0, 9.0], [9.0, 9.0, 9.0]])
    assert torch.equal(assign_credit([Remaining()], **give(turn_rewards=table)), lists)
    unjudged = assign_credit([Remaining()], **give(turn_rewards=[[None, 1.0], None, [0.0]], rewards=[1.0, None, 0.0]))
    assert unjudged.tolist() == [[0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]


def test_turns_may_be_numbered_where_no_gap_parts_them():
    turn = torch.tensor([[-1, 0, 1, -1, 1], [-1, 0, -1, 1, -1], [0, 1, -1, -1, -1]])
    credit = assign_credit([Remaining()], **give(turn=turn, turn_rewards=[[0.25, 0.75], [0.0, 0.5], [-1.0, 1.0]]))
    assert credit.tolist() == [[0, 1, 0.75, 0, 0.75], [0, 0.5, 0, 0.5, 0], [0, 1, 0, 0, 0]]
    for wrong in ([[1, 1, -1]], [[0, 2, -1]], [[1, 0, -1]], [[0, -1, 0]]):
        with pytest.raises(ValueError, match="turn does not count the turns of every row"):
            read_turn_numbers(torch.tensor(wrong), torch.tensor([[True, True, False]]))


def test_turns_act_on_the_prompt_and_then_on_what_stands_between():
    """First turns act on one prompt, three times; both second turns act on a 9."""
    assert assign_credit([Visits()], **give()).tolist() == [[0, 3, 3, 0, 2], [0, 3, 0, 2, 0], [3, 3, 0, 0, 0]]
    prompts = torch.tensor([[-1, 7], [-1, 7], [7, 7]])
    assert assign_credit([Visits()], **give(prompt_ids=prompts))[:, 1].tolist() == [2, 2, 1]
    others = IDS.index_put((torch.tensor(0), torch.tensor(3)), torch.tensor(8))
    assert assign_credit([Visits()], **give(completion_ids=others))[0, 4] == 1
    stack = load_stack([Visits()])
    assert assign_credit(stack, **give(states=[[4, 5], [4, 4], [6]])).tolist()[1] == [0, 3, 0, 3, 0]
    assert stack.rollout.states.tolist() == [[4, 5], [4, 4], [6, -1]]


def test_equal_observations_have_equal_hashes_in_every_run():
    (state,), (same,), (other,) = hash_observations(torch.zeros(3, 1).long(), IDS[:, :1], [[1, 2], [-1, 1, 2], [2, 1]])
    assert state == same == 5934340693050249675
    assert state != other


def test_a_batch_of_single_turns_needs_neither():
    given = {name: value[2:] if isinstance(value, torch.Tensor) else value[:1] for name, value in give().items()}
    assert assign_credit([Remaining()], **given).tolist() == [[1, 1, 0, 0, 0]]
    assert assign_credit([Visits()], **given | {"completion_ids": None}).tolist() == [[1, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("operator", "changed", "message"),
    [
        (
            Remaining,
            {},
            r"Remaining needs `turn_rewards`, which this call does not give: .* Pass a list of None if",
        ),
        (Visits, {"completion_ids": None}, r"Visits needs `states`, which this call .* or `completion_ids` to make it"),
        (Remaining, {"turn_rewards": [[1.0, 2.0, 3.0], None, None]}, "turn_rewards has 3 values in row 0, expected 2"),
        (Remaining, {"turn_rewards": [[0.0], [], None]}, "turn_rewards has 0 values in row 1, expected 2"),
        (Remaining, {"turn_rewards": torch.zeros(3, 1)[:, :0]}, "turn_rewards has 0 values in row 0"),
        (Remaining, {"turn_rewards": [None, None]}, "turn_rewards has 2 rows, expected 3"),
        (Remaining, {"turn_rewards": [[float("nan")], None, None]}, "turn_rewards holds a number that is not finite"),
        (Visits, {"states": [[1], [1, 2], [1]]}, "states has 1 values in row 0, expected 2: one for each turn"),
        (Visits, {"turn": torch.zeros(3, 2)}, r"turn has shape \(3, 2\), expected \(3, 5\)"),
    ],
)
def test_what_is_missing_or_does_not_fit_the_turns_is_refused(operator, changed, message):
    with pytest.raises(ValueError, match=message):
        assign_credit([operator()], **give(**changed))


VERL_BATCH = {
    "response_mask": MASK,
    "responses": IDS,
    "prompts": torch.tensor([[7, 7], [8, 0], [7, 7]]),
    "rm_scores": torch.tensor([[0.0, 0, 0, 0, 1], [0.0, 0, 0, 2, 0], [0.0, 4, 0, 0, 0]]),
}
"""A session of two rows, of two turns each, and one of a single turn; both begin with the prompt 7 7."""

VERL_KEYS = (["q_0_0", "q_0_1", "q_1_0"], [False] * 3)


def test_verl_scores_of_turns_and_tools_are_added_to_the_reward_of_the_last_row():
    outcome = assign_verl_credit([Remaining()], VERL_BATCH, *VERL_KEYS)
    assert outcome.tolist() == [[0, 2, 2, 0, 2], [0, 2, 0, 2, 0], [4, 4, 0, 0, 0]]
    scores = {"turn_scores": [[10.0, 20.0], [], [40.0]], "tool_rewards": [[0.0], [0.5], []]}
    credit = assign_verl_credit([Remaining()], VERL_BATCH | scores, *VERL_KEYS)
    assert credit.tolist() == [[0, 32.5, 32.5, 0, 22.5], [0, 2.5, 0, 2, 0], [44, 44, 0, 0, 0]]
    flat = assign_verl_credit([GRPO()], VERL_BATCH | scores, *VERL_KEYS)
    assert flat[:, 1].tolist() == [-5.75, -5.75, 5.75]  # 32.5 and 44, around their mean
    with pytest.raises(StackError, match="turn_scores has 3 values in row 2, expected 1: one for each turn"):
        assign_verl_credit([Remaining()], VERL_BATCH | {"turn_scores": [[], [], [1, 2, 3]]}, *VERL_KEYS)


def test_a_later_row_of_a_verl_session_begins_with_a_turn_that_acts_on_its_prompt():
    """The prompt 7 7 is acted on twice, the 9 twice, and the prompt 8 once."""
    credit = assign_verl_credit([Visits()], VERL_BATCH, *VERL_KEYS)
    assert credit.tolist() == [[0, 2, 2, 0, 2], [0, 1, 0, 2, 0], [2, 2, 0, 0, 0]]
    without = {name: value for name, value in VERL_BATCH.items() if name != "prompts"}
    with pytest.raises(StackError, match=r"Visits compares what turns act on\. Select `prompts` and `responses`"):
        assign_verl_credit([Visits()], without, *VERL_KEYS)


def test_messages_of_nemo_rl_are_turns_and_rewards_count_where_the_batch_keeps_them():
    """Prompt 1 1, the assistant says 5 5, hears 9, says 6: after the first message it has earned 0.25 of 1."""
    messages = [{"token_ids": torch.tensor(ids)} for ids in ([1, 1], [5, 5], [9], [6])]
    given = {
        "prompt_ids": torch.tensor([[1, 1]] * 2),
        "rewards": torch.tensor([1.0, 0.0]),
        "mask": torch.tensor([[0.0, 0, 1, 1, 0, 1]] * 2),
    }
    batch = {"message_log": [messages] * 2}
    estimator = CreditAdvantageEstimator([Remaining()])
    assert estimator.compute_advantage(**given, repeated_batch=batch)[0].tolist() == [0, 0, 1, 1, 0, 1]
    kept = batch | {"turn_rewards": torch.tensor([[0.25, 0.75], [0.0, 0.0]])}
    assert estimator.compute_advantage(**given, repeated_batch=kept)[0].tolist() == [0, 0, 1, 1, 0, 0.75]
    visits = CreditAdvantageEstimator([Visits()])
    assert visits.compute_advantage(**given, repeated_batch=batch)[0].tolist() == [0, 0, 2, 2, 0, 2]
    with pytest.raises(StackError, match="Visits needs `states`, which NeMo-RL does not give"):
        visits.compute_advantage(**given, repeated_batch={})
