"""Batches as verl has them: shuffled, filled up, with sessions of several rows; the credit of our own loop."""

import pytest
import torch
from torch.testing import assert_close

from callbacks import GRPO, GTPO, HICRA, Entropy, MaxRL, StrategicGrams
from rlcredit.bridge.verl import assign_verl_credit
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack import CreditStack
from tests.conftest import make_rollout

VERDICTS = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


def make_verl_batch(rollout, order, filled=0):
    """Rows in an order of their own, the reward on the last token, some rows that only fill up the batch."""
    last = rollout.mask.sum(-1) - 1
    rewards = torch.zeros_like(rollout.old_logprobs)
    rewards[torch.arange(len(rewards)), last] = rollout.correct
    tensors = {
        "responses": rollout.completion_ids,
        "response_mask": rollout.mask.long(),
        "token_level_rewards": rewards,
        "old_log_probs": rollout.old_logprobs,
        "entropy": rollout.entropy,
    }
    rows = torch.cat([order, order[:1].expand(filled)])
    size = rollout.group_size
    keys = [f"id_{row // size}_{row % size}_0" for row in order.tolist()] + [f"pad_{n}_0" for n in range(filled)]
    keys = [key if key.startswith("id") else f"x{key}_0" for key in keys]
    return {name: value[rows] for name, value in tensors.items()}, keys, [row >= len(order) for row in range(len(rows))]


def test_shuffled_rows_and_rows_that_fill_up_the_batch_have_the_credit_of_our_own_loop():
    rollout = make_rollout(VERDICTS, group_size=4, width=6)
    order = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
    texts = dict(zip(map(tuple, rollout.completion_ids.tolist()), rollout.tokens, strict=True))

    def decode(ids):
        return next(pieces[: len(ids)] for row, pieces in texts.items() if list(row[: len(ids)]) == ids)

    for stack in ([GRPO()], [MaxRL(), Entropy(), GTPO(beta=0.5)], [GRPO(), StrategicGrams(), HICRA()]):
        expected = CreditStack(stack).assign(rollout).advantages.where(rollout.mask, 0)
        found = assign_verl_credit(stack, *make_verl_batch(rollout, order, filled=2), decode=decode)
        assert_close(found[:8], expected[order], atol=1e-6, rtol=0)
        assert not found[8:].any()


def test_the_rows_of_a_session_are_one_completion_with_the_reward_of_the_last():
    ids = torch.tensor([[1, 2], [3, 0], [4, 5]])
    mask = torch.tensor([[1, 1], [1, 0], [1, 1]])
    rewards = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    batch = {"responses": ids, "response_mask": mask, "token_level_rewards": rewards}
    found = assign_verl_credit([GRPO()], batch, ["q_0_0", "q_0_1", "q_1_0"], [False] * 3)
    assert found.tolist() == [[0.5, 0.5], [0.5, 0.0], [-0.5, -0.5]]
    reversed_rows = {name: value.flip(0) for name, value in batch.items()}
    again = assign_verl_credit([GRPO()], reversed_rows, ["q_1_0", "q_0_1", "q_0_0"], [False] * 3)
    assert torch.equal(again, found.flip(0))


def make_small_batch(**fields):
    mask = torch.tensor([[1, 1], [1, 0]])
    return {"response_mask": mask, **fields}, ["q_0_0", "q_1_0"], [False, False]


def test_the_penalty_that_verl_has_put_into_rewards_is_in_the_credit():
    scores, penalised = torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.tensor([[-0.1, 0.7], [-0.2, 0.0]])
    plain = assign_verl_credit(["GRPO"], *make_small_batch(rm_scores=scores))
    assert plain.tolist() == [[0.5, 0.5], [-0.5, 0.0]]
    found = assign_verl_credit(["GRPO"], *make_small_batch(rm_scores=scores, token_level_rewards=penalised))
    assert_close(found, torch.tensor([[0.4, 0.4], [-0.4, 0.0]]))


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (["GRPO", "SharedStateMask"], "SharedStateMask needs `completion_ids`, which verl does not give"),
        (["GRPO", "GTPO"], "GTPO needs `old_logprobs`, which verl does not give"),
        (["GRPO", "EntropyAdvantage"], "EntropyAdvantage needs `entropy`, which verl does not give"),
        (["GRPO", "RandomMask"], "RandomMask needs `step`, which verl does not give"),
        (["MaxRL"], "MaxRL reads verdicts, and `rewards` hold 0.7. Let the trainer's rewards be verdicts"),
    ],
)
def test_what_the_batch_does_not_hold_is_refused_where_it_is_read(stack, message):
    batch = make_small_batch(rm_scores=torch.tensor([[0.0, 0.7], [0.0, 0.0]]))
    with pytest.raises(StackError, match=message):
        assign_verl_credit(stack, *batch)
    with pytest.raises(ValueError, match=r"neither `token_level_rewards` nor `rm_scores`. Select both"):
        assign_verl_credit(["GRPO"], *make_small_batch())
