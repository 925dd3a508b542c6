"""Adapter critic: a second adapter on the policy's base model with a value head, PPO's usual critic."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rlcredit.credit.critic import Critic
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.second_adapter import SecondAdapter, share_of_all
from rlcredit.formulas.reward_histogram import RewardHistogram


class AdapterCritic(
    Critic,
    reads="completion_ids judged lookahead old_logprobs prompt_ids returns rewards step",
    writes="critic_weight values",
    state="adapter",
):
    """Estimate values with the base model under an adapter of their own and a linear head, taught by the last rollout.

    Each rollout costs it one forward pass, and a forward and a backward pass for each round of learning: about as much
    as the policy's own update. Values of tokens that were not sampled it cannot tell.

    Args:
        rate: Learning rate of AdamW; gradients are clipped to a norm of one.
        rounds: Steps taken on each rollout.
        target: Histogram in which it predicts the reward; right or wrong if None.
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of what it learns; 1 is the return itself, less learns from rewards and its own values alone.

    """

    def __init__(
        self,
        rate: float = 1e-3,
        rounds: int = 1,
        target: RewardHistogram | None = None,
        warmup: int = 1,
        lam: float = 1.0,
    ) -> None:
        super().__init__(warmup, lam)
        if not (rate > 0 and rounds >= 1):
            raise ValueError(f"AdapterCritic expects rate > 0 and rounds >= 1, got {rate:g} and {rounds}.")
        self.rate, self.rounds = rate, rounds
        self.target = target or RewardHistogram()
        self.adapter: dict = {}

    def judge(self, rollout: Rollout) -> Tensor:
        """Return the mean of the predicted histogram before each token."""
        adapter, values = SecondAdapter(**self.adapter), torch.zeros_like(rollout.old_logprobs)
        head, bias = adapter.others
        for rows, states in adapter.iterate_states(rollout):
            values[rows, : states.shape[1]] = self.target.mean(states.float() @ head + bias)
        return values

    def learn(self, rollout: Rollout, returns: Tensor) -> Tensor:
        """Take some steps on the cross-entropy of the returns, averaged over tokens."""
        mask = rollout.judged_mask
        share = loss = share_of_all(mask)

        def compute_loss(rows: Tensor, states: Tensor, head: Sequence[Tensor]) -> Tensor:
            token_mask = mask[rows, : states.shape[1]]
            targets = self.target.shares(returns[rows, : states.shape[1]][token_mask])
            return share * cross_entropy(states.float()[token_mask] @ head[0] + head[1], targets, reduction="sum")

        adapter = SecondAdapter.restore_or_create(self.adapter, self, rollout, self.target.bins)
        for _ in range(self.rounds):
            loss = adapter.improve(rollout, compute_loss, self.rate)
        self.adapter = vars(adapter)
        return loss
