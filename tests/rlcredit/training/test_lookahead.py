"""States and alternatives against plain forward passes of whole contexts, one at a time."""

import math
from functools import partial

import pytest
import torch
from small_policies import load_with_random_adapter, save_as_policy
from torch.testing import assert_close

from rlcredit.base.exit_status import RunStopped
from rlcredit.episodes.games import RunningSum
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.policy.prompt_format import PromptFormat
from rlcredit.tasks import Episodes
from rlcredit.tasks.example import Example
from tests.rlcredit.training.sampled_rollouts import (
    ANSWERS,
    LENGTHS,
    QUESTIONS,
    make_lookahead,
    next_log_p,
    read_answer,
    read_contexts,
    sample_rollout,
)


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


@pytest.mark.parametrize("size", ["auto", 80])
def test_hidden_states_are_those_of_each_context_alone(reader, size):
    rollout = sample_rollout(reader)
    hidden = make_lookahead(reader, size).read_hidden(rollout)
    assert hidden.shape[:2] == rollout.mask.shape
    assert not hidden[~rollout.mask].any()
    with torch.no_grad():
        for row, length in enumerate(LENGTHS):
            prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
            states = read_contexts(reader, torch.cat([prompt, rollout.completion_ids[row, : length - 1]]))
            assert_close(hidden[row, :length], states[len(prompt) - 1 :], atol=2e-5, rtol=0)


@pytest.mark.parametrize(("size", "most"), [("auto", 99), (80, 99), ("auto", 3)])
def test_alternatives_are_those_of_each_context_alone(reader, size, most):
    rollout = sample_rollout(reader)
    read = make_lookahead(reader, size).read_alternatives(rollout, smallest=0.02, most=most)
    with torch.no_grad():
        expected = find_alternatives(reader, rollout, smallest=0.02, most=most)
    assert list(zip(read.rows.tolist(), read.places.tolist(), read.tokens.tolist())) == list(expected)
    assert len({row for row, _, _ in expected}) > 3
    logprobs, hidden = zip(*expected.values())
    assert_close(read.logprobs, torch.tensor(logprobs), atol=2e-5, rtol=0)
    assert_close(read.hidden, torch.stack(hidden), atol=2e-5, rtol=0)


def test_completions_of_one_token_have_alternatives(policy):
    rollout = sample_rollout(policy, lengths=(1, 1))
    read = make_lookahead(policy).read_alternatives(rollout, smallest=0.001, most=99)
    with torch.no_grad():
        expected = find_alternatives(policy, rollout, smallest=0.001, most=99)
    assert list(zip(read.rows.tolist(), read.places.tolist(), read.tokens.tolist())) == list(expected)
    assert {row for row, _, _ in expected} == {0, 1}
    assert_close(read.hidden, torch.stack([state for _, state in expected.values()]), atol=2e-5, rtol=0)


def test_tokens_that_end_a_completion_are_left_out(policy, monkeypatch):
    rollout = sample_rollout(policy)
    read = partial(make_lookahead(policy).read_alternatives, rollout, smallest=0.02, most=99)
    before = read()
    stop = before.tokens.mode().values
    monkeypatch.setattr(Policy, "stop_ids", stop[None])
    after = read()
    kept = before.tokens != stop
    assert torch.equal(after.tokens, before.tokens[kept])
    assert_close(after.hidden, before.hidden[kept], atol=2e-5, rtol=0)


def test_a_sure_policy_has_none(policy):
    rollout = sample_rollout(policy)
    rollout.old_logprobs = torch.zeros_like(rollout.old_logprobs)
    read = make_lookahead(policy).read_alternatives(rollout, smallest=0.01, most=99)
    assert [tuple(values.shape) for values in read] == [(0,), (0,), (0,), (0,), (0, policy.head.shape[1])]


def test_in_bfloat16_they_are_those_of_contexts_in_bfloat16(policy):
    rounded = partial(torch.autocast, "cpu", torch.bfloat16)
    rollout = sample_rollout(policy)
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
    rollout = sample_rollout(policy)
    rollout.update = 1
    with pytest.raises(ValueError, match="an update has changed it"):
        make_lookahead(policy).read_alternatives(rollout, smallest=0.02, most=99)


@pytest.mark.parametrize("size", ["auto", 80])
def test_answers_are_as_likely_as_behind_each_prefix_alone(reader, size):
    rollout = sample_rollout(reader)
    starts = rollout.mask & (torch.arange(rollout.mask.shape[1]) % 3 != 1)
    starts[1] = False  # nothing is asked about one completion
    read = make_lookahead(reader, size).read_answers(rollout, starts, "\n\nThe answer is ")
    assert torch.equal(read.isnan(), ~starts)
    with torch.no_grad():
        for row, place in starts.nonzero().tolist():
            expected = read_answer(reader, rollout, row, place, "\n\nThe answer is ")
            assert_close(read[row, place], expected, atol=1e-4, rtol=0)


def test_a_question_without_an_answer_has_no_likelihood_to_read(policy):
    rollout = sample_rollout(policy)
    rollout.sources = (rollout.sources[0], (1, Example("Write a poem.", "", {})))
    with pytest.raises(RunStopped, match=r"the question 'Write a poem\.' has none"):
        make_lookahead(policy).read_answers(rollout, rollout.mask, "so")


def read_hinted(policy, question, completion_ids):
    """Return log-probabilities and entropies of a completion after a question, from one pass of the whole text."""
    prompt = policy.encode_questions([question])[0]
    ids = torch.cat([prompt[prompt != -1], completion_ids])
    log_p = next_log_p(policy, read_contexts(policy, ids))[-len(completion_ids) - 1 : -1]
    return log_p.gather(-1, completion_ids[:, None])[:, 0], -(log_p.exp() * log_p).sum(-1)


@pytest.mark.parametrize("size", ["auto", 80])
@pytest.mark.parametrize("chat", [True, False])
def test_a_hint_stands_at_the_end_of_the_question(reader, size, chat, monkeypatch):
    monkeypatch.setattr(reader, "prompt", PromptFormat(chat=chat))
    rollout = sample_rollout(reader)
    row_mask = torch.tensor([True, True, False, True, False, True])
    logprobs, entropy = make_lookahead(reader, size).score_with_hint(rollout, row_mask, " It is {answer}!")
    for row, length in enumerate(LENGTHS):
        expected = torch.zeros(2, max(LENGTHS))
        if row_mask[row]:
            question = f"{QUESTIONS[row // 3]} It is {ANSWERS[row // 3]}!"
            with torch.no_grad():
                scores = read_hinted(reader, question, rollout.completion_ids[row, :length])
            expected[:, :length] = torch.stack(scores)
        assert_close(torch.stack([logprobs[row], entropy[row]]), expected, atol=1e-4, rtol=0)


def test_a_hint_reaches_what_an_environment_begins_with(policy):
    episodes = Episodes(RunningSum(), prompts_per_step=2, max_turns=7, turn_tokens=5)
    rollout, lookahead = sample_rollout(policy), make_lookahead(policy)
    lookahead.task = episodes
    rollout.sources = ((0, Example("seed 3", "7", {})), (1, Example("seed 4", "9", {})))
    openings = [episodes.build_conversation(example)[-1]["content"] for _, example in rollout.sources]
    texts = [
        policy.tokenizer.decode(prompt[prompt != -1])
        for prompt in lookahead._write_hinted_prompts(rollout, " It is {answer}!")
    ]
    for text, opening, answer in zip(texts, openings, ("7", "9"), strict=True):
        assert f"{opening} It is {answer}!" in text


def test_a_hint_without_the_answer_is_for_questions_without_one_too(policy):
    rollout, lookahead = sample_rollout(policy), make_lookahead(policy)
    rollout.sources = (rollout.sources[0], (1, Example("Write a poem.", "", {})))
    assert lookahead.score_with_hint(rollout, rollout.judged, " Think.")[0].any()
    with pytest.raises(RunStopped, match=r"the question 'Write a poem\.' has none"):
        lookahead.score_with_hint(rollout, rollout.judged, " It is {answer}!")


def test_what_is_read_after_a_hint_is_counted(policy):
    rollout, lookahead = sample_rollout(policy), make_lookahead(policy)
    lookahead.score_with_hint(rollout, torch.tensor([True, False, True, False, False, False]), " It is {answer}!")
    prompt = policy.encode_questions([f"{QUESTIONS[0]} It is 3!"])[0]
    counts = rollout.token_counts.take_counts()
    assert counts.pop("forward") == (prompt != -1).sum() + LENGTHS[0] + LENGTHS[2]
    assert not any(counts.values())
    logprobs, entropy = lookahead.score_with_hint(rollout, torch.zeros(6, dtype=torch.bool), " It is {answer}!")
    assert not logprobs.any()
    assert not entropy.any()
    assert not any(rollout.token_counts.take_counts().values())


def count_all(rollout):
    """Return the tokens of both prompts and of all completions, counted from texts without padding."""
    prompts = {tuple(row[row != -1].tolist()) for row in rollout.prompt_ids}
    return sum(map(len, prompts)) + sum(LENGTHS)


def test_every_token_that_is_read_is_counted_once(policy):
    rollout, lookahead = sample_rollout(policy), make_lookahead(policy, 120)
    everything, counts = count_all(rollout), rollout.token_counts

    def taken(kind):
        found = counts.take_counts()
        assert sum(found.values()) == found[kind]
        return found[kind]

    lookahead.read_hidden(rollout)
    assert taken("forward") == everything
    found = lookahead.read_alternatives(rollout, smallest=0.02, most=99)
    assert taken("forward") == everything + len(found.tokens) > everything
    starts = torch.zeros_like(rollout.mask)
    starts[0, 0] = starts[0, 3] = starts[4, 1] = True
    lookahead.read_answers(rollout, starts, closing=" so")
    first, second = (len(policy.tokenizer.encode(text, add_special_tokens=False)) for text in ANSWERS)
    closed = len(policy.tokenizer.encode(" so", add_special_tokens=False))
    assert taken("forward") == everything + 2 * (closed + first) + closed + second
    factors = lookahead.create_adapter(torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert len(list(lookahead.iterate_states(rollout, factors))) == 3
    assert taken("forward") == everything
    with torch.enable_grad():
        list(lookahead.iterate_states(rollout, factors))
    assert taken("backward") == everything


def gather_states(rollout, lookahead, factors):
    """Return the predicting states of all completions under an adapter, ``(B, T, D)``, zero on padding."""
    states = torch.zeros(*rollout.mask.shape, lookahead.hidden_size)
    with torch.no_grad():
        for parts in lookahead.iterate_states(rollout, factors):
            for rows, found in parts:
                states[rows, : found.shape[1]] = found
    return states.where(rollout.mask[..., None], 0)


@pytest.mark.parametrize("size", ["auto", 80])
def test_states_under_an_adapter_are_those_of_each_context_alone(reader, size):
    rollout, lookahead = sample_rollout(reader), make_lookahead(reader, size)
    noise = torch.Generator().manual_seed(0)
    factors = [0.05 * torch.randn(factor.shape, generator=noise) for factor in lookahead.create_adapter(noise)]
    states = gather_states(rollout, lookahead, factors)
    assert (states - lookahead.read_hidden(rollout)).abs().max() > 0.01
    with torch.no_grad(), reader.use_adapter(factors):
        for row, length in enumerate(LENGTHS):
            prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
            expected = read_contexts(reader, torch.cat([prompt, rollout.completion_ids[row, : length - 1]]))
            assert_close(states[row, :length], expected[len(prompt) - 1 :], atol=5e-5, rtol=0)


def test_a_fresh_adapter_changes_no_hidden_state_of_the_base_model(reader):
    rollout, lookahead = sample_rollout(reader), make_lookahead(reader)
    fresh = [lookahead.create_adapter(torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    assert not torch.equal(fresh[0][0], fresh[1][0])
    states = [gather_states(rollout, lookahead, factors) for factors in fresh]
    assert torch.equal(*states)
    with torch.no_grad(), reader.disable_adapter():
        for row, length in enumerate(LENGTHS):
            prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
            expected = read_contexts(reader, torch.cat([prompt, rollout.completion_ids[row, : length - 1]]))
            assert_close(states[0][row, :length], expected[len(prompt) - 1 :], atol=2e-5, rtol=0)


def test_tokens_are_scored_as_they_were_when_they_were_drawn(policy):
    rollout, lookahead = sample_rollout(policy), make_lookahead(policy)
    with torch.no_grad():
        scores = lookahead.score_tokens(rollout, torch.arange(6), lookahead.read_hidden(rollout))
    assert_close(scores.where(rollout.mask, 0), rollout.old_logprobs, atol=2e-5, rtol=0)


def test_a_model_whose_attention_knows_better_than_the_mask_is_refused(policy, monkeypatch):
    rollout = sample_rollout(policy)
    hidden_states = Policy.hidden_states

    def causal(self, ids, attention_mask, cache=None, use_cache=False, positions=None):
        if attention_mask.ndim == 4:  # as if every branch saw the whole completion
            attention_mask = torch.zeros_like(attention_mask)
        return hidden_states(self, ids, attention_mask, cache, use_cache, positions)

    monkeypatch.setattr(policy, "reads_branches", False)
    monkeypatch.setattr(Policy, "hidden_states", causal)
    with pytest.raises(ValueError, match="takes no mask of a caller's own"):
        make_lookahead(policy).read_alternatives(rollout, 0.001, 8)
