"""The oracle against exact values, on a policy whose completions can be counted on one's fingers."""

import contextlib
import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from rlcredit.engines.in_process import InProcessEngine
from rlcredit.oracle import Cost, Oracle
from rlcredit.policy import Policy
from rlcredit.rollout import Rollout
from rlcredit.verifiers import Verdict

PAD, A, B, END = range(4)
HORIZON = 4
LOGITS = torch.tensor([[-9.0, 0.2, 1.0, 0.1], [-9.0, 1.3, 0.0, -0.5], [-9.0, -0.4, 0.6, 0.9], [-9.0, 0.0, 0.0, 0.0]])
"""Of the next token, by the last one; the first token of a prompt counts as the first row."""


class Cache:
    """The last token of every row is all that this policy remembers."""

    def batch_select_indices(self, rows):
        pass


class Chain:
    """A Markov chain over three tokens with the interface of a policy."""

    tokenizer = SimpleNamespace(pad_token_id=PAD)
    device = torch.device("cpu")
    stop_ids = torch.tensor([END])
    head = LOGITS.T
    predicting = Policy.predicting

    @contextlib.contextmanager
    def sampling(self):
        yield

    def prompt_mask(self, ids):
        return (ids != PAD).cumsum(-1) > 0

    def hidden(self, ids, attention_mask, cache=None, use_cache=False):
        return torch.nn.functional.one_hot(ids, 4).float(), Cache()

    def pieces(self, ids, mask):
        return [["-AB."[token] for token in row[kept].tolist()] for row, kept in zip(ids, mask)]


class Judge:
    """Right is what ends, and holds as many A as B."""

    def judge(self, completions, examples):
        return [
            Verdict.RIGHT if text.endswith(".") and text.count("A") == text.count("B") > 0 else Verdict.WRONG
            for text in completions
        ]


def probability(last, token):
    return LOGITS[last].softmax(-1)[token].item()


def value(prefix):
    """The exact chance of a right answer."""
    text = "".join("-AB."[token] for token in prefix)
    if prefix and (prefix[-1] == END or len(prefix) == HORIZON):
        return float(Judge().judge([text], [None])[0] is Verdict.RIGHT)
    last = prefix[-1] if prefix else A
    return sum(probability(last, token) * value((*prefix, token)) for token in (PAD, A, B, END))


def every_completion():
    """All of them, up to the horizon, without the padding token."""
    found = []
    for length in range(1, HORIZON + 1):
        for tokens in itertools.product((A, B, END), repeat=length):
            ended = tokens[-1] == END or length == HORIZON
            if ended and END not in tokens[:-1]:
                found.append(tokens)
    return found


@pytest.fixture
def rollout():
    completions = every_completion()
    mask = torch.tensor([[t < len(each) for t in range(HORIZON)] for each in completions])
    ids = torch.tensor([[*each, *[PAD] * (HORIZON - len(each))] for each in completions])
    right = [float(value(each)) for each in completions]
    zeros = torch.zeros(mask.shape)
    prompt = torch.tensor([[PAD, B, A]]).expand(len(completions), -1)
    result = Rollout(0, 1, prompt, ids, mask, zeros, zeros, torch.tensor(right), [[] for _ in completions])
    result.sources = tuple((7, None) for _ in completions)
    return result


def oracle(seed=0):
    return Oracle(Chain(), InProcessEngine(), Judge(), 1.0, HORIZON, seed)


def test_values_and_credit_are_unbiased_at_every_prefix(rollout):
    found = oracle().credit(rollout, range(len(rollout.mask)), samples=1500)
    tested = 0
    for row, completion in enumerate(every_completion()):
        for t in range(len(completion)):
            exact = value(completion[: t + 1]) - value(completion[:t])
            error = max(found.error[row, t].item(), 1e-3)
            assert abs(found.credit[row, t].item() - exact) < 4 * error
            spread = math.sqrt(value(completion[:t]) * (1 - value(completion[:t])) / 1500)
            assert abs(found.values[row, t].item() - value(completion[:t])) < 4 * spread + 1e-3
            tested += 1
    assert tested == int(rollout.mask.sum()) > 50


def test_credit_telescopes_to_the_verdict(rollout):
    found = oracle().credit(rollout, range(len(rollout.mask)), samples=40)
    assert_close(found.credit.sum(-1), rollout.correct.double() - found.values[:, 0])
    assert not found.credit[~rollout.mask].any()
    assert not found.error[~rollout.mask].any()


def test_common_noise_makes_differences_surer_than_the_values_they_are_of(rollout):
    # The exact variance of a difference of two independent means of M draws is the sum of theirs.
    found = oracle().credit(rollout, range(len(rollout.mask)), samples=400)
    values = found.values
    independent = ((values * (1 - values) / 399)[:, :-1] + (values * (1 - values) / 399)[:, 1:]).sqrt()
    inside = rollout.mask[:, 1:] & (independent[:, :-1] > 0)
    assert found.error[:, :-1][inside].mean() < 0.9 * independent[:, :-1][inside].mean()


def leaving(completions):
    """Expected continuations decoded per sample: each prefix in turn is left at one of its tokens."""
    prefixes = {whole[:t]: whole for whole in reversed(completions) for t in range(len(whole))}  # the first to ask it
    return sum(1 - probability(prefix[-1] if prefix else A, whole[len(prefix)]) for prefix, whole in prefixes.items())


def test_each_prefix_is_asked_once_and_the_cost_is_known_before(rollout):
    asked, rows = oracle(), range(len(rollout.mask))
    prefixes = {completion[:t] for completion in every_completion() for t in range(len(completion))}
    cost = asked.cost(rollout, rows, rollout.mask, samples=8)
    assert cost.prefixes == len(prefixes)
    first = asked.credit(rollout, rows, samples=8)
    decoded = asked.decoded
    assert cost.continuations <= decoded <= cost.tokens <= len(prefixes) * 8 * HORIZON
    assert asked.cost(rollout, rows, rollout.mask, samples=8) == Cost(0, 0, 0)
    again = asked.credit(rollout, rows, samples=8)
    assert asked.decoded == decoded
    assert_close(again.credit, first.credit, atol=0, rtol=0)


def test_only_continuations_that_leave_their_completion_are_decoded_in_proportion_to_tokens_and_samples(rollout):
    # From a prefix a continuation draws another token with chance 1 - p(token): the cost is their sum times M.
    one, many = [rollout.mask.sum(-1).argmax().item()], range(len(rollout.mask))
    each = [every_completion()[row] for row in many]
    for rows in (one, many):
        expected = leaving([each[row] for row in rows])
        for samples in (400, 1600):
            spent = oracle().cost(rollout, rows, rollout.mask[list(rows)], samples).continuations / samples
            assert spent == pytest.approx(expected, abs=4 * (expected / samples) ** 0.5)


def test_a_cut_is_worth_the_same_whoever_else_is_asked(rollout):
    rows = list(range(len(rollout.mask)))
    everywhere = oracle().outcomes(rollout, rows, rollout.mask, samples=30)
    seldom = torch.zeros_like(rollout.mask)
    seldom[:, [0, 2]] = True
    some = oracle().outcomes(rollout, rows, seldom, samples=30)
    ended = torch.arange(HORIZON + 1) >= rollout.mask.sum(-1, keepdim=True)
    known = torch.cat([seldom, seldom[:, :1] & False], -1) | ended
    assert torch.equal(some.isnan().all(-1), ~known)
    assert torch.equal(some[known], everywhere[known])
    costs = [oracle().cost(rollout, rows, cuts, samples=30).continuations for cuts in (seldom, rollout.mask)]
    assert costs[0] < costs[1]


def test_another_seed_or_step_asks_with_other_noise_and_the_same_with_the_same(rollout):
    one, two, three = (oracle(seed).credit(rollout, [3, 9], 100).values for seed in (0, 0, 1))
    later = oracle()
    later.step = 1
    assert torch.equal(one, two)
    assert not torch.equal(one, three)
    assert not torch.equal(one, later.credit(rollout, [3, 9], 100).values)


def test_noise_that_draws_the_completion_itself_gives_its_verdict(rollout):
    # An unjudged completion counts as wrong, as a continuation would that cannot be judged.
    rollout.judged = rollout.correct < 1
    found = oracle().outcomes(rollout, range(len(rollout.mask)), rollout.mask, samples=4)
    assert not found[:, -1].any()
