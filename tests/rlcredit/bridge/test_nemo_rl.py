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


def test_what_nemo_rl_does_not_give_is_refused_when_the_estimator_is_made():
    with pytest.raises(StackError, match="Entropy needs `entropy`, which NeMo-RL does not give"):
        CreditAdvantageEstimator([GRPO(), Entropy(), GTPO()])
