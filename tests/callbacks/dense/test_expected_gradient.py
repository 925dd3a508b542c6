import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.rloo import RLOO
from tests.conftest import KnownCritic, copy_rollout_fields, make_rollout
from tests.tabular_policy import KnownState, make_tabular_policy

EXACTLY = torch.tensor([[first, 0] for first, times in enumerate((4, 2, 1, 1)) for _ in range(times)])
"""Eight completions in which the first tokens occur as often as they are likely."""


def test_credit_of_one_place_that_a_person_can_compute():
    policy = make_tabular_policy()
    policy.true_values = lambda tokens: torch.tensor([1.0, 0.5, 0.0, 0.0])[tokens[:, :1]].expand(-1, 3)
    rollout = policy.make_rollout(EXACTLY, torch.zeros(8))
    rollout.advantages, rollout.critic_weight = torch.full((8, 2), 8.0), 0.5
    ExpectedGradient(share=0.5).assign(rollout)
    # Probabilities 1/2, 1/4, 1/8, 1/8 of values 1, 1/2, 0, 0: a mean of 5/8.
    credit = torch.tensor([0.1875, -0.03125, -0.078125, -0.078125])
    assert_close(rollout.advantages[:, 0], 0.25 * credit[EXACTLY[:, 0]] + 0.75 * 8.0)
    others = rollout.alternatives.keep(rollout.alternatives.places == 0)
    assert len(others.rows) == 3 * 8
    assert not (others.tokens == EXACTLY[others.rows, 0]).any()
    assert_close(others.weights, 0.25 * credit[others.tokens])
    assert_close(others.logprobs, torch.tensor([0.5, 0.25, 0.125, 0.125])[others.tokens].log())


def test_a_critic_that_knows_the_truth_gives_the_exact_policy_gradient():
    policy = make_tabular_policy()
    rewards = policy.true_values(EXACTLY)[:, 2]
    rollout = policy.make_rollout(EXACTLY, rewards)
    metrics = ExpectedGradient().assign(rollout)
    assert_close(policy.credit_gradient(rollout), policy.true_gradient(), atol=1e-6, rtol=0)
    assert metrics["alternatives"] == 6.0
    size = rollout.alternatives.weights.abs().sum() / 8
    assert metrics["size"].item() == pytest.approx(size.item())


def test_only_what_the_last_token_was_worth_adds_noise():
    policy = make_tabular_policy()
    for rewards in (torch.zeros(8), torch.ones(8)):
        rollout = policy.make_rollout(EXACTLY, rewards)
        ExpectedGradient().assign(rollout)
        assert_close(policy.credit_gradient(rollout)[:4], policy.true_gradient()[:4], atol=1e-6, rtol=0)


def squared_mean(vectors):
    """Return the squared length of the expectation, without the squares of single draws, and its jackknife error."""
    count, total = len(vectors), vectors.sum(0)

    def estimate(total, squares, count):
        return (total.square().sum(-1) - squares) / (count * (count - 1))

    squares = vectors.square().sum(-1)
    without = estimate(total - vectors, squares.sum() - squares, count - 1)
    error = ((count - 1) * (without - without.mean()).square().mean()).sqrt()
    return estimate(total, squares.sum(), count).item(), error.item()


def test_with_a_critic_that_knows_the_truth_it_expects_what_leave_one_out_credit_expects():
    policy, generator, drawn = make_tabular_policy(), torch.Generator().manual_seed(0), {"flat": [], "expected": []}
    for _ in range(400):
        tokens = policy.draw_tokens(32, generator)
        rewards = torch.bernoulli(policy.true_values(tokens)[:, 2], generator=generator)
        for name, operator in (("flat", RLOO()), ("expected", ExpectedGradient())):
            rollout = policy.make_rollout(tokens, rewards)
            operator.assign(rollout)
            drawn[name].append(policy.credit_gradient(rollout))
    flat, expected = (torch.stack(vectors) for vectors in drawn.values())
    assert torch.cosine_similarity(flat.mean(0), expected.mean(0), dim=0) > 0.98
    truth = policy.true_gradient().square().sum().item()
    for vectors in (flat, expected):
        length, error = squared_mean(vectors)
        assert error < 0.2 * truth
        assert abs(length - truth) < 3 * error
    noise = [vectors.var(0).sum() for vectors in (flat, expected)]
    assert noise[0] > 3 * noise[1]


def judged_rollout(judged):
    rollout = make_rollout()
    rollout.judged = torch.tensor(judged)
    rollout.values, rollout.critic = rollout.old_logprobs.exp(), KnownCritic()
    return rollout


def test_weights_at_a_place_add_up_to_zero_and_the_unjudged_have_none():
    judged = [True, False, True, True, True, True, False, True]
    rollout = judged_rollout(judged)
    ExpectedGradient().assign(rollout)
    others = rollout.alternatives
    assert set(others.rows.tolist()) == {row for row, known in enumerate(judged) if known}
    total = rollout.advantages.index_put((others.rows, others.places), others.weights, accumulate=True)
    assert_close(total, torch.zeros(8, 6), atol=1e-6, rtol=0)
    forks = torch.zeros(8, 6, dtype=torch.bool).index_put((others.rows, others.places), torch.tensor(True))
    assert (rollout.advantages[forks] != 0).any()
    assert not rollout.advantages[~forks].any()  # no likely alternative, no credit from the critic


@pytest.mark.parametrize("how", [{"share": 0.0}, {"critic_weight": 0.0}, {"critic": None}])
def test_without_a_critic_to_trust_nothing_is_read_and_nothing_changes(how):
    rollout = judged_rollout([True] * 8)
    rollout.lookahead = None
    for name in how.keys() - {"share"}:
        setattr(rollout, name, how[name])
    before = copy_rollout_fields(rollout)
    metrics = ExpectedGradient(share=how.get("share", 1.0)).assign(rollout)
    assert torch.equal(rollout.advantages, before["advantages"])
    assert rollout.alternatives is None
    assert not any(metrics.values())


class Asked(KnownState):
    """Remember what was asked of the critic and of the lookahead."""

    def __init__(self, lookahead):
        self.lookahead = lookahead

    def estimate(self, rollout, rows, hidden, path):
        self.rows, self.path = rows, path
        return super().estimate(rollout, rows, hidden, path)

    def read_alternatives(self, rollout, smallest, most):
        self.limits = smallest, most
        self.read = self.lookahead.read_alternatives(rollout, smallest, most)
        return self.read


def test_the_critic_is_asked_of_prefixes_that_end_in_the_alternative():
    policy = make_tabular_policy()
    rollout = policy.make_rollout(EXACTLY, torch.zeros(8))
    asked = rollout.critic = rollout.lookahead = Asked(rollout.lookahead)
    ExpectedGradient(smallest=0.2, most=7).assign(rollout)
    assert asked.limits == (0.2, 7)
    assert torch.equal(asked.rows, asked.read.rows)
    for path, row, place, logprob in zip(asked.path, asked.rows, asked.read.places, asked.read.logprobs):
        surprisals = [*(-rollout.old_logprobs[row, :place]).tolist(), -logprob.item()]
        surprised = sum(surprisal > 1.0 for surprisal in surprisals)
        expected = [surprisals[-1], math.fsum(surprisals), max(surprisals), surprised, len(surprisals) / 50]
        assert path.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("arguments", [{"smallest": 0.0}, {"smallest": 0.5}, {"most": 0}, {"share": 1.1}])
def test_limits_that_leave_no_alternative_are_refused(arguments):
    with pytest.raises(ValueError, match="ExpectedGradient expects"):
        ExpectedGradient(**arguments)
