"""A policy of two tokens out of four, as two tables: everything about it can be computed."""

from dataclasses import dataclass

import torch

from rlcredit.credit.alternatives import Alternatives
from rlcredit.credit.rollout import Rollout


@dataclass
class TabularPolicy:
    """Two tokens are drawn; the reward is one with a chance that depends on both.

    Args:
        first: Logits of the first token, shape (4,).
        second: Logits of the second token after each first one, shape (4, 4).
        chances: Chance of a reward of one, shape (4, 4).

    """

    first: torch.Tensor
    second: torch.Tensor
    chances: torch.Tensor

    def expected_reward(self):
        """Return the expected reward, with graph."""
        return (self.first.softmax(-1)[:, None] * self.second.softmax(-1) * self.chances).sum()

    def true_gradient(self):
        """Return the gradient of the expected reward, shape (20,)."""
        return self.flat_gradient(self.expected_reward())

    def flat_gradient(self, value):
        """Return the gradient of a value with respect to both tables, shape (20,)."""
        return torch.cat([part.flatten() for part in torch.autograd.grad(value, [self.first, self.second])])

    def log_p(self, first):
        """Return the log-probabilities of all tokens at both places of completions, shape (B, 2, 4), with graph."""
        return torch.stack([self.first.log_softmax(-1).expand(len(first), 4), self.second.log_softmax(-1)[first]], 1)

    def true_values(self, tokens):
        """Return what is known before each token and after the last: the chance of a reward, shape (B, 3)."""
        after_first = (self.second.softmax(-1) * self.chances).sum(-1)
        after_none = self.expected_reward().expand(len(tokens))
        every = torch.stack([after_none, after_first[tokens[:, 0]], self.chances[tokens[:, 0], tokens[:, 1]]], 1)
        return every.detach()

    def draw_tokens(self, number, generator):
        """Return completions, shape (B, 2)."""
        first = torch.multinomial(self.first.detach().softmax(-1), number, replacement=True, generator=generator)
        second = torch.multinomial(self.second.detach().softmax(-1)[first], 1, generator=generator)[:, 0]
        return torch.stack([first, second], 1)

    def make_rollout(self, tokens, rewards, group_size=8):
        """Return completions with true values and a critic that knows them; a state is its own value."""
        log_p = self.log_p(tokens[:, 0]).detach()
        rollout = Rollout(
            step=0,
            group_size=group_size,
            prompt_ids=torch.zeros(len(tokens), 1, dtype=torch.long),
            completion_ids=tokens,
            mask=torch.ones_like(tokens, dtype=torch.bool),
            old_logprobs=log_p.gather(2, tokens[..., None])[..., 0],
            entropy=-(log_p.exp() * log_p).sum(-1),
            correct=rewards,
            tokens=[["", ""] for _ in tokens],
            lookahead=TabularLookahead(self),
        )
        rollout.values = self.true_values(tokens)[:, :2]
        rollout.critic = KnownState()
        return rollout

    def credit_gradient(self, rollout):
        """Return the gradient that the credit of a rollout makes, averaged over completions, shape (20,)."""
        log_p = self.log_p(rollout.completion_ids[:, 0])
        sampled = log_p.gather(2, rollout.completion_ids[..., None])[..., 0]
        gained = (sampled * rollout.advantages).sum()
        if rollout.alternatives is not None:
            others = rollout.alternatives
            gained = gained + (log_p[others.rows, others.places, others.tokens] * others.weights).sum()
        return self.flat_gradient(gained / len(rollout.mask))


@dataclass
class TabularLookahead:
    """Reads all other tokens of a place that are likely enough, and the chance of a reward after each."""

    policy: TabularPolicy

    def read_alternatives(self, rollout, smallest, most):
        log_p = self.policy.log_p(rollout.completion_ids[:, 0]).detach()
        other = torch.arange(4) != rollout.completion_ids[..., None]
        rows, places, tokens = (other & (log_p.exp() > smallest)).nonzero(as_tuple=True)
        branches = rollout.completion_ids[rows].clone()
        branches[torch.arange(len(rows)), places] = tokens
        hidden = self.policy.true_values(branches)[torch.arange(len(rows)), places + 1]
        return Alternatives(rows, places, tokens, log_p[rows, places, tokens], hidden[:, None])


class KnownState:
    """A critic to which a state tells its value."""

    def estimate(self, rollout, rows, hidden, path):
        return hidden[:, 0]


def make_tabular_policy(seed=0):
    """Return a policy whose first token has probabilities 1/2, 1/4, 1/8 and 1/8."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.tensor([0.5, 0.25, 0.125, 0.125]).log().requires_grad_()
    second = (0.7 * torch.randn(4, 4, generator=generator)).requires_grad_()
    return TabularPolicy(first, second, torch.rand(4, 4, generator=generator))
