"""What an environment has said is read and not scored: scores and gradients against plain passes over whole rows."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.token_counts import count_sequence_tokens
from rlcredit.formulas.turns import find_read_lengths, number_turns
from rlcredit.policy.packed_forward import find_packed_forward
from tests.rlcredit.training.sampled_rollouts import make_lookahead, sample_rollout
from tests.whole_logits import PlainGradients, RandomCredit, differentiate, partly_judged_task, plain_loss


def drop_tokens(mask, noise):
    """Return a mask with gaps: about a third of the inner tokens are an environment's."""
    last = find_read_lengths(mask)[:, None] - 1
    is_inner = (torch.arange(mask.shape[1]) > 0) & (torch.arange(mask.shape[1]) < last)
    return mask & ~(is_inner & (torch.rand(mask.shape, generator=noise) < 0.35))


def make_episodes(rollout):
    """Return the rollout with other tokens in gaps; credit of alternatives and continuations at places that are left.

    Continuations have gaps of their own.
    """
    noise, episodes = torch.Generator().manual_seed(4), copy.copy(rollout)
    episodes.mask = drop_tokens(rollout.mask, noise)
    episodes.turn = number_turns(episodes.mask)
    others = torch.randint(3, 99, rollout.mask.shape, generator=noise)
    episodes.completion_ids = rollout.completion_ids.where(episodes.mask, others)
    advantages = rollout.advantages.where(episodes.mask, 1e6)
    episodes.advantages = advantages
    tokens, branches = rollout.alternatives, rollout.continuations
    episodes.alternatives = tokens.keep(episodes.mask[tokens.rows, tokens.places])
    branches = branches._replace(mask=drop_tokens(branches.mask, noise))
    episodes.continuations = branches.keep(episodes.mask[branches.rows, branches.places])
    return episodes


def read_plainly(module, rollout, row):
    """Return the log-probabilities of a row's tokens from one pass over its prompt and the whole of it."""
    prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
    ids = rollout.completion_ids[row, : int(find_read_lengths(rollout.mask)[row])]
    logits = module.policy.lm(input_ids=torch.cat([prompt, ids])[None]).logits[0, len(prompt) - 1 : -1]
    log_p = (logits / module.sampling.temperature).log_softmax(-1)
    return log_p.gather(-1, ids[:, None])[:, 0]


@pytest.mark.parametrize("size", ["auto", 1, 90])
@pytest.mark.parametrize("packed", [False, True])
def test_scores_and_gradients_are_those_of_plain_passes(packed, size, fit, monkeypatch):
    if packed:
        monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 0)
    plain, how = PlainGradients(), {"completions": 4, "max_tokens": 24, "task": partly_judged_task()}
    module = fit(steps=1, stack=[RandomCredit(), plain], micro_batch_tokens=size, **how).module
    assert (find_packed_forward(module.policy) is not None) == packed
    [rollout] = plain.rollouts
    episodes = make_episodes(rollout)
    read_lengths = find_read_lengths(episodes.mask)
    assert (read_lengths - episodes.mask.sum(-1)).sum() > 20
    assert len(episodes.alternatives.rows) > 5
    assert (find_read_lengths(episodes.continuations.mask) > episodes.continuations.mask.sum(-1)).any()
    scores, rows = module(episodes), module.rows_to_score(episodes)
    for row in rows.nonzero().flatten().tolist():
        mask, length = episodes.mask[row], int(read_lengths[row])
        assert_close(
            scores.logprobs[row, mask], read_plainly(module, episodes, row)[mask[:length]], atol=1e-5, rtol=1e-5
        )
        assert not scores.logprobs[row, ~mask].any()
    expected = differentiate(module, plain_loss(module, episodes, episodes.credit))
    loss = module.update_loss.compute_loss(episodes, scores, episodes.credit)
    gradients = differentiate(module, loss)
    largest = max(gradient.abs().max() for gradient in expected.values())
    assert largest > 1e-3
    for name, gradient in gradients.items():
        assert_close(gradient / largest, expected[name] / largest, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("packed", [False, True])
def test_tokens_are_scored_without_graph_where_they_were_sampled(packed, fit, monkeypatch):
    if packed:
        monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 0)
    module = fit(steps=1, completions=4, max_tokens=24).module
    policy = module.policy
    whole = sample_rollout(policy)
    mask = drop_tokens(whole.mask, torch.Generator().manual_seed(1))
    mask[1] = False
    assert not mask.all(-1).any()
    ids = (whole.prompt_ids, whole.completion_ids)
    expected = module.scorer.score_without_graph(*ids, whole.mask, 0.7, nullcontext)
    scores = module.scorer.score_without_graph(*ids, mask, 0.7, nullcontext)
    for values, references in zip(scores, expected, strict=True):
        assert_close(values, references.where(mask, 0), atol=1e-5, rtol=1e-5)


def test_what_is_read_again_is_the_same_whoever_has_written_it(policy):
    whole = sample_rollout(policy)
    episodes, lookahead = copy.copy(whole), make_lookahead(policy, 80)
    episodes.mask = drop_tokens(whole.mask, torch.Generator().manual_seed(1))
    mask = episodes.mask
    assert (mask != whole.mask).sum() >= 5
    hidden = lookahead.read_hidden(whole)
    assert_close(lookahead.read_hidden(episodes), hidden.where(mask[..., None], 0), atol=2e-5, rtol=0)
    every, options = (lookahead.read_alternatives(one, smallest=0.02, most=99) for one in (whole, episodes))
    is_left = mask[every.rows, every.places]
    for values, references in zip(options, every, strict=True):
        assert_close(values, references[is_left], atol=2e-5, rtol=0)
    answers, expected = (lookahead.read_answers(one, mask, " so") for one in (episodes, whole))
    assert_close(answers, expected, atol=1e-5, rtol=0, equal_nan=True)
    hinted, scores = (lookahead.score_with_hint(one, one.judged, " It is {answer}.") for one in (episodes, whole))
    for values, references in zip(hinted, scores, strict=True):
        assert_close(values, references.where(mask, 0), atol=2e-5, rtol=0)


def test_an_episode_costs_the_tokens_that_are_read():
    prompt_ids = torch.tensor([[5, 6], [5, 6]])
    mask = torch.tensor([[True, False, False, True, False], [True, True, False, False, False]])
    assert count_sequence_tokens(prompt_ids, mask) == 2 + 4 + 2
