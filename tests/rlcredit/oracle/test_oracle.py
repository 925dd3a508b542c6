"""The oracle against exact values, on a policy whose completions can be counted on one's fingers."""

import contextlib
import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.oracle import ContinuationCost, Oracle
from rlcredit.oracle.prefix_tree import PrefixTree
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PADDING
from rlcredit.verification.rewards import Scores
from rlcredit.verification.verifiers import Verdict

PAD, A, B, END = range(4)
HORIZON = 4
LOGITS = torch.tensor([[-9.0, 0.2, 1.0, 0.1], [-9.0, 1.3, 0.0, -0.5], [-9.0, -0.4, 0.6, 0.9], [-9.0, 0.0, 0.0, 0.0]])
"""Of the next token, by the last one; the first token of a prompt counts as the first row."""


class Cache:
    layers = ()

    """The last token of every row is all that this policy remembers."""

    def batch_select_indices(self, rows):
        pass


class Chain:
    """A Markov chain over three tokens with the interface of a policy."""

    device = torch.device("cpu")
    stop_ids = torch.tensor([END])
    head = LOGITS.T
    read_prompts = Policy.read_prompts
    predicting_states = Policy.predicting_states
    read_completions = Policy.read_completions
    prompt_mask = Policy.prompt_mask

    @contextlib.contextmanager
    def evaluation_mode(self):
        yield

    def hidden_states(self, ids, attention_mask, cache=None, use_cache=False):
        return torch.nn.functional.one_hot(ids.clamp(min=0), 4).float(), Cache()

    def decode_texts(self, ids, mask):
        return ["".join("-AB."[token] for token in row[kept].tolist()) for row, kept in zip(ids, mask)]

    def prepend_thinking_mark(self, completions):
        return completions


class Judge:
    """Right is what ends, and holds as many A as B, some at least; or, if that is asked, more B than A."""

    def judge(self, completions, examples):
        return [
            Verdict.RIGHT if right(text, example) else Verdict.WRONG for text, example in zip(completions, examples)
        ]

    def score(self, completions, examples):
        return Scores(self.judge(completions, examples))


def right(text, example):
    a, b = text.count("A"), text.count("B")
    return text.endswith(".") and (b > a if example == "more" else a == b > 0)


def probability(last, token, temperature):
    return (LOGITS[last] / temperature).softmax(-1)[token].item()


def value(prefix, example, temperature):
    """The exact chance of a right answer."""
    text = "".join("-AB."[token] for token in prefix)
    if prefix and (prefix[-1] == END or len(prefix) == HORIZON):
        return float(right(text, example))
    last = prefix[-1] if prefix else A
    return sum(
        probability(last, token, temperature) * value((*prefix, token), example, temperature)
        for token in (PAD, A, B, END)
    )


def every_completion():
    """All of them, up to the horizon, without the padding token."""
    found = []
    for length in range(1, HORIZON + 1):
        for tokens in itertools.product((A, B, END), repeat=length):
            ended = tokens[-1] == END or length == HORIZON
            if ended and END not in tokens[:-1]:
                found.append(tokens)
    return found


EXAMPLES = {7: "equal", 9: "more"}


def asked_about(completions):
    """Groups of two completions; every other one answers another question, which reads the same."""
    numbers = [(7, 9)[row // 2 % 2] for row in range(len(completions))]
    mask = torch.tensor([[t < len(each) for t in range(HORIZON)] for each in completions])
    ids = torch.tensor([[*each, *[PAD] * (HORIZON - len(each))] for each in completions])
    correct = torch.tensor([value(each, EXAMPLES[number], 1.0) for each, number in zip(completions, numbers)])
    zeros = torch.zeros(mask.shape)
    prompt = torch.tensor([[PADDING, B, A]]).expand(len(completions), -1)
    result = Rollout(0, 2, prompt, ids, mask, zeros, zeros, correct, [[] for _ in completions])
    result.sources = tuple((number, EXAMPLES[number]) for number in numbers[::2])
    return result, [EXAMPLES[number] for number in numbers]


SOME = every_completion()[3::3][:10]
ALL = [*every_completion(), every_completion()[0]]


@pytest.fixture
def rollout():
    return asked_about(SOME)[0]


def oracle(seed=0, temperature=1.0, step=0):
    return Oracle(Chain(), InProcessEngine(fused=False), Judge(), temperature, HORIZON, seed, step)


def test_there_is_something_to_walk_along_and_something_to_decode():
    assert (len(ALL), len(SOME)) == (32, 10)
    assert {len(each) for each in SOME} == {3, 4}
    assert {len(each) for each in ALL} == {1, 2, 3, 4}


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("completions", [SOME, ALL, SOME[-2:]], ids=["some", "all", "two"])
def test_values_and_credit_are_unbiased_at_every_prefix(completions, temperature):
    rollout, examples = asked_about(completions)
    found = oracle(temperature=temperature).credit(rollout, range(len(completions)), samples=1500)
    tested = 0
    for row, (completion, example) in enumerate(zip(completions, examples)):
        for t in range(len(completion)):
            before, after = (value(completion[:n], example, temperature) for n in (t, t + 1))
            assert abs(found.credit[row, t].item() - (after - before)) < 4 * max(found.error[row, t].item(), 1e-3)
            spread = math.sqrt(before * (1 - before) / 1500)
            assert abs(found.values[row, t].item() - before) < 4 * spread + 1e-3
            tested += 1
    assert tested == int(rollout.mask.sum())


def test_prompts_that_read_the_same_are_not_the_same():
    # Whoever is asked about a prompt alone hears the same as beside another prompt of the same words.
    rollout, _ = asked_about(SOME)
    seldom = torch.zeros_like(rollout.mask)
    seldom[:, [0, 2]] = True
    together = oracle().outcomes(rollout, range(10), seldom, samples=200)
    for row in range(10):
        alone = oracle().outcomes(rollout, [row], seldom[[row]], samples=200)
        assert torch.equal(alone[0].nan_to_num(2), together[row].nan_to_num(2))


def test_a_walk_by_hand():
    # Completions A B and A A of prompt 0; three noises draw A A B, A B B and B - - behind the empty prefix, and so on.
    tree = PrefixTree()
    empty, a, ab = tree.path(0, [A, B])
    _, _, aa = tree.path(0, [A, A])
    tree.end_completion(ab, 1.0, samples=3)
    tree.end_completion(aa, 0.0, samples=3)
    tree.drawn.update({empty: [A, A, B], a: [A, B, END]})
    tree.follow_leads([empty, a])
    b, stopped = tree.child(empty, B), tree.child(a, END)
    assert tree.leads[empty] == [(aa, -1), (ab, -1), (b, 2)]
    assert tree.leads[a] == [(aa, -1), (ab, -1), (stopped, 2)]
    assert (tree.tokens(stopped), tree.depth(stopped), tree.prompt(stopped)) == ([A, END], 2, 0)
    assert tree.path(1, [A])[0] != empty
    assert tree.prompt(tree.path(5, [A])[1]) == 5


def test_credit_telescopes_to_the_verdict(rollout):
    found = oracle().credit(rollout, range(10), samples=40)
    assert_close(found.credit.sum(-1), rollout.correct.double() - found.values[:, 0])
    assert not found.credit[~rollout.mask].any()
    assert not found.error[~rollout.mask].any()


def test_common_noise_makes_differences_surer_than_the_values_they_are_of(rollout):
    # The exact variance of a difference of two independent means of M draws is the sum of theirs.
    found = oracle().credit(rollout, range(10), samples=400)
    values = found.values
    independent = ((values * (1 - values) / 399)[:, :-1] + (values * (1 - values) / 399)[:, 1:]).sqrt()
    inside = rollout.mask[:, 1:] & (independent[:, :-1] > 0)
    assert found.error[:, :-1][inside].mean() < 0.9 * independent[:, :-1][inside].mean()


def test_each_prefix_is_asked_once_and_the_cost_is_known_before(rollout):
    asked, rows = oracle(), range(10)
    named = [(row // 2 % 2, SOME[row][:t]) for row in rows for t in range(len(SOME[row]))]
    cost = asked.estimate_cost(rollout, rows, rollout.mask, samples=8)
    assert 0 < cost.prefixes <= len(set(named)) < len(named)
    first = asked.credit(rollout, rows, samples=8)
    decoded = asked.decoded
    assert 0 < decoded <= cost.tokens <= len(set(named)) * 8 * HORIZON
    assert asked.estimate_cost(rollout, rows, rollout.mask, samples=8) == ContinuationCost(0, 0, 0)
    again = asked.credit(rollout, rows, samples=8)
    assert asked.decoded == decoded
    assert_close(again.credit, first.credit, atol=0, rtol=0)


def test_only_continuations_that_leave_are_decoded_in_proportion_to_tokens_and_samples():
    # From a prefix of a lone completion a continuation draws another token with chance 1 - p: the cost is their sum
    # times M, for each prompt of its own.
    lone = [each for each in ALL if len(each) == HORIZON][:4:2]
    expected = [sum(1 - probability(each[t - 1] if t else A, each[t], 1.0) for t in range(HORIZON)) for each in lone]
    rollout, _ = asked_about([lone[0], lone[0], lone[1], lone[1]])
    for samples in (400, 1600):
        spent = [
            oracle().estimate_cost(rollout, rows, rollout.mask[rows], samples).continuations / samples
            for rows in ([0], [2], [0, 2], [0, 1, 2, 3])
        ]
        for each, told in zip((expected[0], expected[1], sum(expected), sum(expected)), spent):
            assert told == pytest.approx(each, abs=4 * (each / samples) ** 0.5)
        assert spent[2] == spent[3] == pytest.approx(spent[0] + spent[1])


def test_a_prefix_is_worth_the_same_wherever_else_one_asks(rollout):
    rows = list(range(10))
    everywhere = oracle().outcomes(rollout, rows, rollout.mask, samples=30)
    seldom = torch.zeros_like(rollout.mask)
    seldom[:, [0, 2]] = True
    some = oracle().outcomes(rollout, rows, seldom, samples=30)
    ended = torch.arange(HORIZON + 1) >= rollout.mask.sum(-1, keepdim=True)
    known = torch.cat([seldom, seldom[:, :1] & False], -1) | ended
    assert torch.equal(some.isnan().all(-1), ~known)
    assert torch.equal(some[known], everywhere[known])
    costs = [
        oracle().estimate_cost(rollout, rows, starts, samples=30).continuations for starts in (seldom, rollout.mask)
    ]
    assert 0 < costs[0] < costs[1]


def test_another_seed_step_or_stream_asks_with_other_noise_and_the_same_with_the_same(rollout):
    def values(asked):
        return asked.credit(rollout, [3, 9], 100).values

    one = values(oracle())
    assert torch.equal(one, values(oracle()))
    for other in (oracle(seed=1), oracle(step=1), oracle().with_fresh_noise()):
        assert not torch.equal(one, values(other))


def test_what_was_not_judged_counts_as_wrong_for_the_continuations_that_come_to_it():
    # Both prompts have every completion, so that nearly every continuation comes to one of them.
    rollout, _ = asked_about([each for pair in zip(ALL[::2], ALL[1::2]) for each in (*pair, *pair)])
    rows = range(2 * len(ALL))
    told = oracle().outcomes(rollout, rows, rollout.mask, samples=50)
    rollout.judged = rollout.correct < 1
    without = oracle().outcomes(rollout, rows, rollout.mask, samples=50)
    assert told.nansum() > 1000
    assert without.nansum() < 0.02 * told.nansum()


def test_the_engine_says_how_many_continuations_are_decoded_at_a_time(rollout):
    asked = []

    class Counting(InProcessEngine):
        def decode(self, policy, prompt_ids, noise, *rest):
            asked.append(len(noise))
            return super().decode(policy, prompt_ids, noise, *rest)

    def answers(**settings):
        asked.clear()
        one = Oracle(Chain(), Counting(**settings, fused=False), Judge(), 1.0, HORIZON)
        return one.outcomes(rollout, range(len(SOME)), rollout.mask, 40)

    expected, continuations = answers(), sum(asked)
    assert max(asked) <= 40 < continuations, "if nothing is said, as many as there are completions or samples"
    assert_close(answers(decode_batch_size=1000), expected, rtol=0, atol=0, equal_nan=True)
    assert asked == [continuations]
    assert_close(answers(decode_batch_size=8), expected, rtol=0, atol=0, equal_nan=True)
    assert max(asked) <= 8


def test_after_an_update_there_is_nobody_to_ask(rollout):
    rollout.update = 1
    with pytest.raises(ValueError, match="Ask before it"):
        oracle().credit(rollout, [0], samples=2)


def places_of(rollout):
    """Every place of every completion, as rows and places."""
    return rollout.mask.nonzero(as_tuple=True)


def test_continuations_to_be_trained_on_are_draws_of_the_policy_and_their_verdicts_estimate_values(rollout):
    rows, places = places_of(rollout)
    continued, verdicts = oracle(temperature=0.6).continue_prefixes(rollout, rows, places, samples=600)
    assert verdicts.shape == (len(rows), 600)
    assert torch.equal(continued.rows, rows.repeat_interleave(600))
    assert torch.equal(continued.places, places.repeat_interleave(600))
    assert int((continued.places + continued.mask.sum(-1)).max()) == HORIZON
    for prefix, (row, place) in enumerate(zip(rows.tolist(), places.tolist())):
        exact = value(SOME[row][:place], EXAMPLES[rollout.sources[row // 2][0]], 0.6)
        spread = math.sqrt(exact * (1 - exact) / 600)
        assert abs(verdicts[prefix].mean().item() - exact) < 4 * spread + 1e-6
    for number in range(0, len(continued.rows), 97):
        row, place, own = (values[number] for values in (continued.rows, continued.places, continued.mask))
        tokens = [*SOME[row][:place], *continued.completion_ids[number][own].tolist()]
        told = float(right("".join("-AB."[token] for token in tokens), EXAMPLES[rollout.sources[row // 2][0]]))
        assert verdicts.flatten()[number].item() == told
        for t in range(int(place), len(tokens)):
            chance = probability(tokens[t - 1] if t else A, tokens[t], 0.6)
            assert continued.logprobs[number, t - place].item() == pytest.approx(math.log(chance), abs=1e-5)
        assert not continued.credit[number].any()


def test_a_continuation_depends_on_nothing_else_that_is_asked_and_is_decoded_anew(rollout):
    rows, places = places_of(rollout)
    asked = oracle()
    together, verdicts = asked.continue_prefixes(rollout, rows, places, samples=5)
    assert asked.decoded == int(together.mask.sum())
    assert rollout.token_counts.decoded == asked.decoded
    again, _ = asked.continue_prefixes(rollout, rows[3:4], places[3:4], samples=2)
    for number in range(2):
        own = together.completion_ids[15 + number][together.mask[15 + number]]
        assert torch.equal(again.completion_ids[number][again.mask[number]], own)
    assert asked.decoded == int(together.mask.sum()) + int(again.mask.sum())
    small = Oracle(Chain(), InProcessEngine(decode_batch_size=3, fused=False), Judge(), 1.0, HORIZON)
    parts, told = small.continue_prefixes(rollout, rows, places, samples=5)
    assert torch.equal(parts.completion_ids.where(parts.mask, -1), together.completion_ids.where(together.mask, -1))
    assert torch.equal(told, verdicts)


def test_continuations_of_the_same_prefix_share_no_noise(rollout):
    # The first two completions of prompt 7, continued from the empty prefix: the same state, other draws.
    rows, places = torch.tensor([0, 1]), torch.tensor([0, 0])
    continued, _ = oracle().continue_prefixes(rollout, rows, places, samples=400)
    first = continued.completion_ids[:, 0].view(2, 400)
    chances = torch.tensor([probability(A, token, 1.0) for token in (A, B, END)])
    expected = chances.square().sum().item()  # that two independent draws are the same
    assert (first[0] == first[1]).double().mean().item() == pytest.approx(expected, abs=0.1)
    assert (first[0, 1:] == first[0, :-1]).double().mean().item() == pytest.approx(expected, abs=0.1)
    for other in (oracle(seed=1), oracle(step=1), oracle().with_fresh_noise()):
        another, _ = other.continue_prefixes(rollout, rows, places, samples=400)
        assert not torch.equal(another.completion_ids[:, 0], continued.completion_ids[:, 0])
    common = oracle().outcomes(rollout, [0], rollout.mask[:1], samples=400)[0, 0]
    _, own = oracle().continue_prefixes(rollout, rows[:1], places[:1], samples=400)
    assert not torch.equal(own[0], common)


def test_what_the_verifier_cannot_tell_has_no_verdict_and_nothing_asked_is_nothing_decoded(rollout):
    class Unsure(Judge):
        def judge(self, completions, examples):
            verdicts = super().judge(completions, examples)
            return [Verdict.UNJUDGED if text.startswith("B") else told for text, told in zip(completions, verdicts)]

    asked, rows = Oracle(Chain(), InProcessEngine(fused=False), Unsure(), 1.0, HORIZON), torch.tensor([0])
    continued, verdicts = asked.continue_prefixes(rollout, rows, torch.tensor([0]), samples=50)
    assert torch.equal(verdicts[0].isnan(), continued.completion_ids[:, 0] == B)
    assert 0 < int(verdicts.isnan().sum()) < 50
    before = asked.decoded
    for nothing in ((rows[:0], rows[:0], 4), (rows, rows, 0)):
        continued, verdicts = asked.continue_prefixes(rollout, *nothing)
        assert len(continued.rows) == 0
        assert verdicts.numel() == 0
    assert asked.decoded == before
    rollout.update = 1
    with pytest.raises(ValueError, match="Ask before it"):
        asked.continue_prefixes(rollout, rows, rows, samples=2)
