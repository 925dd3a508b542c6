"""States and alternatives against plain forward passes of whole contexts, one at a time."""

import math
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from small_policies import load_with_random_adapter, save_as_policy
from torch.testing import assert_close

from rlcredit.credit.rollout import Rollout
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.training.lookahead import PolicyLookahead
from rlcredit.training.micro_batches import MicroBatches

TEMPERATURE = 0.7
QUESTIONS = ["1 + 2", "9 - 4 + 3 - 8 + 1 = ? Think about it for a while."]
LENGTHS = (5, 1, 3, 8, 2, 8)


def make_gpt2(folder):
    """A random GPT-2, whose positions are learned."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    shape = {"n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 2, "tie_word_embeddings": False}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=384, **shape, bos_token_id=1, eos_token_id=2))
    model.lm_head.weight.data.mul_(20)  # so that some tokens are likely
    return load_with_random_adapter(Policy(save_as_policy(model, folder).path, LoRA(4, 8, ["c_attn"])))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return make_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(params=["policy", pytest.param("gpt2", marks=pytest.mark.filterwarnings("ignore:fan_in_fan_out"))])
def reader(request):
    return request.getfixturevalue(request.param)


def read_contexts(policy, ids):
    """Return the hidden states of a sequence without padding, shape (S, D), or of several of one length."""
    states = policy.lm.get_base_model().base_model(input_ids=ids.view(-1, ids.shape[-1])).last_hidden_state
    return states.view(*ids.shape, -1)


def next_log_p(policy, states):
    return (states.float() @ policy.head.float().T / TEMPERATURE).log_softmax(-1)


def make_rollout(policy, lengths=LENGTHS):
    """Two questions of different length with completions that the policy finds likely, of the lengths given."""
    prompt_ids = policy.encode_questions(QUESTIONS).repeat_interleave(len(lengths) // 2, 0)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    completion_ids, old_logprobs = torch.zeros(mask.shape, dtype=torch.long), torch.zeros(mask.shape)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for row, length in enumerate(lengths):
            ids = prompt_ids[row][prompt_ids[row] != -1]
            for place in range(length):
                log_p = next_log_p(policy, read_contexts(policy, ids)[-1])
                token = torch.multinomial(log_p.exp(), 1, generator=noise)
                completion_ids[row, place], old_logprobs[row, place] = token, log_p[token]
                ids = torch.cat([ids, token])
    return Rollout(
        step=0,
        group_size=len(lengths) // 2,
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        mask=mask,
        old_logprobs=old_logprobs,
        entropy=-old_logprobs,
        correct=torch.zeros(len(lengths)),
        tokens=[[""] * length for length in lengths],
    )


def find_alternatives(policy, rollout, smallest, most):
    """Return what alternatives there are by definition: (row, place, token) to (log pi, state behind it)."""
    found = {}
    for row, length in enumerate(rollout.mask.sum(-1).tolist()):
        prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
        of_row = {}
        for place in range(length):
            context = torch.cat([prompt, rollout.completion_ids[row, :place]])
            log_p = next_log_p(policy, read_contexts(policy, context)[-1])
            excluded = {rollout.completion_ids[row, place].item(), *policy.stop_ids.tolist()}
            tokens = [token for token in (log_p.exp() > smallest).nonzero().flatten().tolist() if token not in excluded]
            if tokens:
                branches = torch.cat([context.expand(len(tokens), -1), torch.tensor(tokens)[:, None]], 1)
                for token, state in zip(tokens, read_contexts(policy, branches)[:, -1]):
                    of_row[row, place, token] = log_p[token].item(), state
        spread = {key: math.exp(logprob) * (1 - math.exp(logprob)) for key, (logprob, _) in of_row.items()}
        likely = sorted(of_row, key=lambda key: -spread[key])[:most]
        found |= {key: of_row[key] for key in sorted(likely)}
    return found


def make_lookahead(policy, size=None, precision=nullcontext):
    return PolicyLookahead(policy, TEMPERATURE, MicroBatches(size), precision)


@pytest.mark.parametrize("size", [None, 2])
def test_hidden_states_are_those_of_each_context_alone(reader, size):
    rollout = make_rollout(reader)
    hidden = make_lookahead(reader, size).read_hidden(rollout)
    assert hidden.shape[:2] == rollout.mask.shape
    assert not hidden[~rollout.mask].any()
    with torch.no_grad():
        for row, length in enumerate(LENGTHS):
            prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
            states = read_contexts(reader, torch.cat([prompt, rollout.completion_ids[row, : length - 1]]))
            assert_close(hidden[row, :length], states[len(prompt) - 1 :], atol=2e-5, rtol=0)


@pytest.mark.parametrize(("size", "most"), [(None, 99), (2, 99), (None, 3)])
def test_alternatives_are_those_of_each_context_alone(reader, size, most):
    rollout = make_rollout(reader)
    read = make_lookahead(reader, size).read_alternatives(rollout, smallest=0.02, most=most)
    with torch.no_grad():
        expected = find_alternatives(reader, rollout, smallest=0.02, most=most)
    assert list(zip(read.rows.tolist(), read.places.tolist(), read.tokens.tolist())) == list(expected)
    assert len({row for row, _, _ in expected}) > 3
    logprobs, hidden = zip(*expected.values())
    assert_close(read.logprobs, torch.tensor(logprobs), atol=2e-5, rtol=0)
    assert_close(read.hidden, torch.stack(hidden), atol=2e-5, rtol=0)


def test_completions_of_one_token_have_alternatives(policy):
    rollout = make_rollout(policy, lengths=(1, 1))
    read = make_lookahead(policy).read_alternatives(rollout, smallest=0.001, most=99)
    with torch.no_grad():
        expected = find_alternatives(policy, rollout, smallest=0.001, most=99)
    assert list(zip(read.rows.tolist(), read.places.tolist(), read.tokens.tolist())) == list(expected)
    assert {row for row, _, _ in expected} == {0, 1}
    assert_close(read.hidden, torch.stack([state for _, state in expected.values()]), atol=2e-5, rtol=0)


def test_tokens_that_end_a_completion_are_left_out(policy, monkeypatch):
    rollout = make_rollout(policy)
    read = partial(make_lookahead(policy).read_alternatives, rollout, smallest=0.02, most=99)
    before = read()
    stop = before.tokens.mode().values
    monkeypatch.setattr(Policy, "stop_ids", stop[None])
    after = read()
    kept = before.tokens != stop
    assert torch.equal(after.tokens, before.tokens[kept])
    assert_close(after.hidden, before.hidden[kept], atol=2e-5, rtol=0)


def test_a_sure_policy_has_none(policy):
    rollout = make_rollout(policy)
    rollout.old_logprobs = torch.zeros_like(rollout.old_logprobs)
    read = make_lookahead(policy).read_alternatives(rollout, smallest=0.01, most=99)
    assert [tuple(values.shape) for values in read] == [(0,), (0,), (0,), (0,), (0, policy.head.shape[1])]


def test_in_bfloat16_they_are_those_of_contexts_in_bfloat16(policy):
    rounded = partial(torch.autocast, "cpu", torch.bfloat16)
    rollout = make_rollout(policy)
    lookahead = make_lookahead(policy, precision=rounded)
    read, hidden = lookahead.read_alternatives(rollout, smallest=0.02, most=99), lookahead.read_hidden(rollout)
    exact = make_lookahead(policy).read_hidden(rollout)
    assert (hidden - exact).abs().max() > 1e-4  # it is rounded
    assert len(read.rows) > 10
    with torch.no_grad(), rounded():
        for row, place, token, state in zip(read.rows, read.places, read.tokens, read.hidden):
            prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
            ids = torch.cat([prompt, rollout.completion_ids[row, :place], token[None]])
            states = read_contexts(policy, ids)
            for found, expected in ((state, states[-1]), (hidden[row, place], states[-2])):
                assert (found - expected).norm() < 0.03 * expected.norm()


def test_after_an_update_the_policy_is_not_the_one_that_sampled(policy):
    rollout = make_rollout(policy)
    rollout.update = 1
    with pytest.raises(ValueError, match="an update has changed it"):
        make_lookahead(policy).read_alternatives(rollout, smallest=0.02, most=99)
