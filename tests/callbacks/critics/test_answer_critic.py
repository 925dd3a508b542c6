import copy

import pytest
import torch
from torch.testing import assert_close

from callbacks import check_stack
from callbacks.critics.answer_critic import AnswerCritic, answer_statements
from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.dense.gae import GAE
from callbacks.episode.grpo import GRPO
from callbacks.tokens.gtpo import GTPO
from rlcredit.credit.contract import StackError
from tests.conftest import make_rollout


def count(texts, *answers):
    """Return three times the first column of the statements, and the second column."""
    statements = answer_statements(texts, answers)
    return (3 * statements[:, 0]).round().int().tolist(), statements[:, 1].int().tolist()


def test_an_answer_is_a_word_of_its_own():
    assert count(["12", "=", "2", "5", ";", "x2", " 2", "."], "2") == (
        [0, 0, 0, 1, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 0, 1],
    )


def test_it_may_take_several_tokens_and_have_several_wordings():
    assert count(["-1", "3", " or ", "(", "1", "/", "2", ")"], "-13", "1/2") == (
        [0, 0, 1, 1, 1, 1, 1, 2],
        [0, 0, 1, 0, 0, 0, 0, 1],
    )


def test_no_more_than_three_statements_count():
    assert count(["7 "] * 6, "7")[0] == [0, 1, 2, 3, 3, 3]


def test_nothing_behind_a_prefix_is_read():
    texts = ["so", " 2", "5", ". ", "2", "; ", "25"]
    whole = answer_statements(texts, ["2", "25"])
    for length in range(1, len(texts)):
        assert torch.equal(answer_statements(texts[:length], ["2", "25"]), whole[:length])


def without_weights(critic):
    """A critic that has learned nothing of what it has seen, and gives every prefix one half."""
    critic.network["weights"] = [torch.zeros_like(weight) for weight in critic.network["weights"]]
    return critic


def test_the_signal_is_how_far_two_critics_differ_and_gtpo_makes_weights_of_it():
    critic, rollout = AnswerCritic(fits=1), make_rollout()
    critic.assign(copy.copy(rollout))
    rollout.values = torch.full_like(rollout.old_logprobs, 0.4)
    rollout.values = rollout.values.index_fill(1, torch.tensor([0]), 0.1)  # of the first row, with six tokens
    metrics = without_weights(critic).assign(rollout)
    assert_close(rollout.values[rollout.mask], torch.full((int(rollout.mask.sum()),), 0.5))
    assert_close(rollout.signal[0], torch.tensor([0.4, 0.1, 0.1, 0.1, 0.1, 0.1]))
    assert 0.1 < float(metrics["disagreement"]) < 0.4
    rollout.advantages = torch.ones_like(rollout.advantages)
    GTPO(beta=0.5).assign(rollout)  # the mean is 0.15
    assert_close(rollout.advantages[0], torch.tensor([11 / 6, *[5 / 6] * 5]))


@pytest.mark.parametrize(("blind", "seeing"), [(1, 2), (2, 1)])
def test_it_says_nothing_while_one_of_the_two_warms_up(blind, seeing):
    stack = [HeadCritic(fits=1, warmup=blind), AnswerCritic(fits=1, warmup=seeing)]
    signals = []
    for _ in range(3):
        rollout = make_rollout()
        for critic in stack:
            critic.assign(rollout)
        signals.append(bool(rollout.signal.any()))
    assert signals == [False, False, True]


def draw_alike(seed):
    """Completions that state the answer of their prompt if they are right, else another; nothing else differs."""
    rewards = torch.randint(2, (80,), generator=torch.Generator().manual_seed(seed)).float()
    rollout = make_rollout(rewards.tolist(), group_size=8)
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.hidden, rollout.old_logprobs = torch.zeros_like(rollout.hidden), torch.full(rollout.mask.shape, -0.5)
    answers = [answer for answer, *_ in rollout.lookahead.list_answers(rollout) for _ in range(8)]
    words = [
        answer if right else {"4": "think"}.get(answer, "4") for answer, right in zip(answers, rewards, strict=True)
    ]
    rollout.tokens = [["so", " ", word, ".", " end", ""] for word in words]
    return rollout


def test_it_knows_what_only_the_answer_tells():
    errors = []
    for critic in (AnswerCritic(width=16, fits=100), HeadCritic(width=16, fits=100)):
        critic.assign(draw_alike(seed=0))
        critic.assign(rollout := draw_alike(seed=1))
        errors.append((rollout.values - rollout.rewards[:, None])[:, 3:].square().mean())
    assert errors[0] < 0.05
    assert errors[1] > 0.2


def test_tokens_that_were_not_sampled_it_cannot_judge():
    with pytest.raises(StackError, match="AnswerCritic tells none"):
        check_stack([GRPO(), HeadCritic(), AnswerCritic(), ExpectedGradient()])
    check_stack([GRPO(), HeadCritic(), AnswerCritic(), GAE()])  # its signal need not be used
    with pytest.raises(StackError, match="Put HeadCritic above AnswerCritic"):
        check_stack([GRPO(), AnswerCritic(), GAE()])
