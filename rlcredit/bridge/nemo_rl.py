"""A stack as an advantage estimator of NeMo-RL; written against NeMo-RL 7ea279a, whose batches it reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import BridgedStack, load_stack
from rlcredit.credit.contract import OperatorContract
from rlcredit.credit.rollout import Decode


class CreditAdvantageEstimator:
    """Estimate advantages by a stack, where NeMo-RL's trainer asks its own estimators.

    NeMo-RL gives no entropies, and log-probabilities of zero under ``force_on_policy_ratio``: stacks that read
    entropies are refused, and with surprisal that setting must be off.

    Args:
        stack: Operators; the name of a condition, as ``sepa_paper/c2_grpo_gtpo``; or a file in YAML.
        decode: Function from token ids to the text of each token, for operators that read text.
        seed: Seed of operators that draw.

    """

    def __init__(
        self,
        stack: str | Path | Sequence[OperatorContract] | BridgedStack,
        decode: Decode | None = None,
        seed: int = 0,
    ) -> None:
        self.stack = load_stack(stack, seed)
        self.stack.refuse_missing(dict.fromkeys(("old_logprobs", "ref_logprobs", "decode"), True), "NeMo-RL")
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
            repeated_batch: Batch with ``message_log``, from which token ids are taken where operators read them.
            logprobs_policy: Log-probabilities, shape ``(B, S)``.
            logprobs_reference: Those of the reference policy, shape ``(B, S)``.

        """
        ids = torch.zeros_like(mask, dtype=torch.int64)
        for row, messages in enumerate((repeated_batch or {}).get("message_log", ())):
            joined = torch.cat([message["token_ids"] for message in messages])[: ids.shape[1]]
            ids[row, : len(joined)] = joined.to(ids)
        step, self._step = self._step, self._step + 1
        return assign_credit(
            self.stack,
            completion_ids=ids,
            mask=mask,
            rewards=rewards,
            groups=[str(prompt) for prompt in prompt_ids.tolist()],
            old_logprobs=logprobs_policy,
            ref_logprobs=logprobs_reference,
            decode=self._decode,
            step=step,
            giver="NeMo-RL",
        )
