"""A stack as an advantage estimator of NeMo-RL; written against NeMo-RL 7ea279a, whose batches it reads."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import StackSource, load_stack
from rlcredit.credit.rollout import Decode

NEMO_REPAIRS = {
    "completion_ids": "Only batches of grpo.py hold `message_log`; with single_controller.py put `input_ids` into "
    "AdvantageConfig.repeated_batch_fields.",
    "old_logprobs": "Switch force_on_policy_ratio off.",
    "ref_logprobs": "Switch skip_reference_policy_logprobs_calculation off.",
}
"""How NeMo-RL comes to give what it may leave out."""


class CreditAdvantageEstimator:
    """Estimate advantages by a stack, where NeMo-RL's trainer asks its own estimators.

    NeMo-RL gives no entropies; token ids only in ``message_log`` or ``input_ids`` of its batch; and log-probabilities
    of zero where it skips them. What a stack reads and is not there is refused. Its mask is one
    on the messages of the assistant, so that each is a turn.

    Args:
        stack: Operators, as instances or by name; the name of a condition, as ``sepa_paper/c2_grpo_gtpo``; or a file.
        decode: Function from token ids to the text of each token, for operators that read text.
        seed: Seed of operators that draw.

    Raises:
        StackError: the list is no program, or an operator needs what NeMo-RL never gives.

    """

    def __init__(
        self,
        stack: StackSource,
        decode: Decode | None = None,
        seed: int = 0,
    ) -> None:
        self.stack = load_stack(stack, seed)
        names = ("completion_ids", "old_logprobs", "ref_logprobs", "turn_rewards", "states", "step")
        self.stack.refuse_missing({**dict.fromkeys(names, True), "decode": decode}, "NeMo-RL", NEMO_REPAIRS)
        self._decode = decode
        self._step = 0

    def compute_advantage(
        self,
        prompt_ids: Tensor,
        rewards: Tensor,
        mask: Tensor,
        repeated_batch: Mapping[str, Any] | None = None,
        logprobs_policy: Tensor | None = None,
        logprobs_reference: Tensor | None = None,
        **_: Any,
    ) -> Tensor:
        """Return advantages over prompt and response, shape ``(B, S)``, zero where the mask is.

        Args:
            prompt_ids: Token ids of the prompt of each row, shape ``(B, L)``, or its number, ``(B,)``.
            rewards: Rewards, shape ``(B,)``.
            mask: One on response tokens that count, shape ``(B, S)``.
            repeated_batch: Batch with token ids, where operators read them: ``message_log``, or ``input_ids`` of shape
                ``(B, S)``. NeMo-RL adds the rewards of turns up and drops them; an environment or rollout of your own
                may keep them as ``turn_rewards``, a list for each row. The reward is that of the last turn without.
            logprobs_policy: Log-probabilities, shape ``(B, S)``; zeros count as none.
            logprobs_reference: Log-probabilities of the reference policy, shape ``(B, S)``; zeros count as none.

        Raises:
            StackError: an operator reads what this batch does not hold.

        """
        step, self._step = self._step, self._step + 1
        arguments = {
            "completion_ids": _find_token_ids(repeated_batch or {}, mask),
            "old_logprobs": _drop_zeros(logprobs_policy),
            "ref_logprobs": _drop_zeros(logprobs_reference),
        }
        facts = {**arguments, "turn_rewards": True, "states": True, "decode": self._decode, "step": step}
        self.stack.refuse_missing(facts, "NeMo-RL", NEMO_REPAIRS)
        return assign_credit(
            self.stack,
            mask=mask,
            rewards=rewards,
            groups=[str(prompt) for prompt in prompt_ids.tolist()],
            turn_rewards=(repeated_batch or {}).get("turn_rewards", [None] * len(mask)),
            decode=self._decode,
            step=step,
            giver="NeMo-RL",
            **arguments,
        )


def _find_token_ids(batch: Mapping[str, Any], mask: Tensor) -> Tensor | None:
    """Return the token ids of a batch, shape ``(B, S)``; None if some response token has none."""
    if "input_ids" in batch:
        return batch["input_ids"]
    ids = torch.full_like(mask, -1, dtype=torch.int64)
    for row, messages in enumerate(batch.get("message_log", ())):
        conversation = torch.cat([message["token_ids"] for message in messages])[: ids.shape[1]]
        ids[row, : len(conversation)] = conversation.to(ids)
    return None if (ids[mask.bool()] < 0).any() else ids


def _drop_zeros(logprobs: Tensor | None) -> Tensor | None:
    """Return log-probabilities; None for the zeros that NeMo-RL puts in their place where it skips them."""
    return logprobs if logprobs is not None and logprobs.any() else None
