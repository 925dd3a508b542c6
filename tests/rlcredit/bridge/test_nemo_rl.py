"""Batches as NeMo-RL's estimators get them, over prompt and response: the credit of our own loop."""

import pytest
import torch
from torch.testing import assert_close

from callbacks import GRPO, GTPO, TEMPO, Entropy, OddsWeight
from rlcredit.bridge.nemo_rl import CreditAdvantageEstimator
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack import CreditStack
from tests.conftest import make_rollout

VERDICTS = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("numbered", [True, False])
def test_advantages_lie_where_the_response_does(numbered):
    rollout = make_rollout(VERDICTS, group_size=4, width=6)
    rows = len(rollout.mask)

    def behind_prompt(values):
        return torch.cat([values.new_zeros(rows, 3), values, values.new_zeros(rows, 2)], 1)

    prompts = torch.arange(rows) // 4
    batch = {
        "message_log": [
            [{"token_ids": torch.tensor([9, 9, 9])}, {"token_ids": ids[:length]}]
            for ids, length in zip(rollout.completion_ids, rollout.mask.sum(-1), strict=True)
        ]
    }
    for stack in ([GRPO()], [GRPO(), GTPO(beta=0.5)], [GRPO(), OddsWeight()], [TEMPO()]):
        expected = CreditStack(stack).assign(rollout).advantages.where(rollout.mask, 0)
        found = CreditAdvantageEstimator(stack).compute_advantage(
            prompt_ids=prompts if numbered else prompts[:, None].expand(rows, 3),
            rewards=rollout.correct,
            mask=behind_prompt(rollout.mask.float()),
            repeated_batch=batch,
            logprobs_policy=behind_prompt(rollout.old_logprobs),
            logprobs_reference=None,
        )
        assert_close(found, behind_prompt(expected), atol=1e-6, rtol=0)


IDS = torch.tensor([[1, 1, 5, 6], [1, 1, 5, 7], [1, 1, 5, 6], [1, 1, 8, 0]])
MASK = torch.tensor([[0, 0, 1, 1]] * 3 + [[0, 0, 1, 0]]).float()
LOGS = [[{"token_ids": row[:2]}, {"token_ids": row[2:]}] for row in IDS]


def estimate(stack, batch, logprobs=None, reference=None):
    return CreditAdvantageEstimator(stack, decode=lambda ids: [str(token) for token in ids]).compute_advantage(
        prompt_ids=torch.tensor([[1, 1]] * 4),
        rewards=torch.tensor([1.0, 0.0, 1.0, 0.0]),
        mask=MASK,
        repeated_batch=batch,
        logprobs_policy=-IDS / 10 if logprobs is None else logprobs,
        logprobs_reference=reference,
    )


@pytest.mark.parametrize(
    "batch", [None, {"total_reward": MASK}, {"message_log": LOGS[:3]}, {"message_log": [LOGS[0][:1]] * 4}]
)
def test_token_ids_that_a_batch_does_not_hold_are_refused_where_they_are_read(batch):
    for stack, label in (
        (["GRPO", "SharedStateMask"], "SharedStateMask"),
        (["GRPO", "StrategicGrams", "HICRA"], "StrategicGrams"),
    ):
        with pytest.raises(
            StackError, match=f"{label} needs `completion_ids`, which NeMo-RL does not give: .*message_log"
        ):
            estimate(stack, batch)
    assert estimate(["GRPO"], batch)[:, 2].tolist() == [0.5, -0.5, 0.5, -0.5]


def test_token_ids_come_from_the_messages_or_from_the_column_of_ids():
    stack = ["PrefixBaseline"]
    found = estimate(stack, {"message_log": LOGS})
    assert not torch.equal(found, estimate(["GRPO"], {}))
    assert torch.equal(found, estimate(stack, {"input_ids": IDS}))


def test_zeros_in_place_of_log_probabilities_are_refused_where_they_are_read():
    zeros = torch.zeros(4, 4)
    with pytest.raises(StackError, match=r"GTPO needs `old_logprobs`, .* Switch force_on_policy_ratio off"):
        estimate(["GRPO", "GTPO"], {}, logprobs=zeros)
    with pytest.raises(StackError, match=r"ProcessSignal needs `ref_logprobs`, .*skip_reference_policy"):
        estimate(["GRPO", "ProcessSignal", "OutcomeAnchor"], {}, reference=zeros)
    assert estimate(["GRPO"], {}, zeros, zeros)[0].tolist() == [0.0, 0.0, 0.5, 0.5]


def test_what_nemo_rl_does_not_give_is_refused_when_the_estimator_is_made():
    with pytest.raises(StackError, match="StrategicGrams needs `decode`, which NeMo-RL does not give"):
        CreditAdvantageEstimator(["GRPO", "StrategicGrams", "HICRA"])
    with pytest.raises(StackError, match="Entropy needs `entropy`, which NeMo-RL does not give"):
        CreditAdvantageEstimator([GRPO(), Entropy(), GTPO()])
