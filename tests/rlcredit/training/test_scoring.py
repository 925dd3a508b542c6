"""Log-probabilities for an update: the gradient of credit against whole logits."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from rlcredit.losses import ClippedSurrogate, ImportanceSampling
from tests.slow_cases import mark_others_slow
from tests.whole_logits import PlainGradients, RandomCredit, differentiate, partly_judged_task, plain_loss

DENOMINATORS = [{}, {"denominator": "sequence"}, {"denominator": "constant", "constant": 24}]
FAST = [(120, DENOMINATORS[1], ClippedSurrogate), ("auto", DENOMINATORS[0], ImportanceSampling)]
CASES = list(itertools.product(("auto", 1, 120), DENOMINATORS, (ImportanceSampling, ClippedSurrogate)))


@pytest.mark.parametrize("case", mark_others_slow([*FAST, *(case for case in CASES if case not in FAST)], 2), ids=str)
def test_credit_of_alternatives_and_continuations_has_the_gradient_of_whole_logits(fit, case):
    micro_batch_tokens, how, kind = case
    plain = PlainGradients()
    fit(
        steps=2,
        stack=[RandomCredit(), plain],
        lr=1e-2,
        completions=4,
        max_tokens=24,
        task=partly_judged_task(),
        loss=kind(**how),
        micro_batch_tokens=micro_batch_tokens,
        updates_per_rollout=2,
        minibatches=2,
    )
    assert [rollout.judged.tolist() for rollout in plain.rollouts] == [[True, False, True, True]] * 2
    assert plain.furthest[0] < 1e-3 < 0.3 < plain.furthest[1]  # the second update clips
    for expected, real, losses, rollout in zip(plain.plain, plain.real, plain.losses, plain.rollouts):
        assert set(rollout.alternatives.rows.tolist()) == {0, 1, 2}
        assert set(rollout.continuations.rows.tolist()) == {0, 1, 3}
        assert losses[1] == pytest.approx(losses[0], abs=1e-5)
        assert max(gradient.abs().max() for gradient in real.values()) > 1e-3
        for name in expected:
            assert_close(real[name], expected[name], atol=2e-6, rtol=1e-3)


def test_a_completion_whose_only_credit_is_an_alternative_is_scored(fit):
    plain = PlainGradients()
    module = fit(steps=1, stack=[RandomCredit(), plain], completions=4, max_tokens=24, task=partly_judged_task()).module
    [rollout] = plain.rollouts
    rollout.advantages = torch.zeros_like(rollout.advantages)
    rollout.alternatives = rollout.alternatives.keep(rollout.alternatives.rows == 4)
    rollout.continuations = None
    assert module.rows_to_score(rollout).nonzero().flatten().tolist() == [4]
    expected = differentiate(module, plain_loss(module, rollout, rollout.credit))
    found = differentiate(module, module.update_loss.compute_loss(rollout, module(rollout), rollout.credit))
    assert max(gradient.abs().max() for gradient in found.values()) > 1e-3
    for name in expected:
        assert_close(found[name], expected[name], atol=2e-6, rtol=1e-3)


@pytest.mark.parametrize("micro_batch_tokens", ["auto", 80])
def test_continuations_are_scored_even_if_no_completion_has_credit(fit, micro_batch_tokens):
    plain, how = PlainGradients(), {"completions": 4, "max_tokens": 24, "task": partly_judged_task()}
    module = fit(steps=1, stack=[RandomCredit(), plain], micro_batch_tokens=micro_batch_tokens, **how).module
    [rollout] = plain.rollouts
    rollout.advantages, rollout.alternatives = torch.zeros_like(rollout.advantages), None
    longest = rollout.continuations.places + rollout.continuations.mask.sum(-1)
    assert longest.max() >= rollout.mask.shape[1] - 1
    scores = module(rollout)
    assert_close(scores.logprobs[1:], rollout.old_logprobs[1:], atol=0, rtol=0)
    expected = differentiate(module, plain_loss(module, rollout, rollout.credit))
    found = differentiate(module, module.update_loss.compute_loss(rollout, scores, rollout.credit))
    assert max(gradient.abs().max() for gradient in found.values()) > 1e-3
    for name in expected:
        assert_close(found[name], expected[name], atol=2e-6, rtol=1e-3)


def test_a_minibatch_without_continuations_is_one(fit):
    plain = PlainGradients()
    module = fit(steps=1, stack=[RandomCredit(), plain], completions=4, max_tokens=24, task=partly_judged_task()).module
    [rollout] = plain.rollouts
    rollout.continuations = rollout.continuations.keep(rollout.continuations.rows < 4)
    second = rollout.select_minibatch(1, 2)
    assert len(second.continuations.rows) == 0
    assert module(second).continuations.shape == second.continuations.mask.shape
    without = second.credit._replace(continuations=None)
    assert_close(
        differentiate(module, module.update_loss.compute_loss(second, module(second), second.credit)),
        differentiate(module, module.update_loss.compute_loss(second, module(second), without)),
    )


def test_the_update_counts_continuations_from_their_first_token_on(fit):
    plain = PlainGradients()
    how = {"completions": 4, "max_tokens": 24, "task": partly_judged_task()}
    run = fit(steps=1, stack=[RandomCredit(), plain], **how)
    [rollout] = plain.rollouts
    judged, lengths = rollout.judged, rollout.mask.sum(-1)
    branches = zip(rollout.continuations.rows, rollout.continuations.places, rollout.continuations.mask)
    read = [int(place + mask.sum()) for n, (row, place, mask) in enumerate(branches) if judged[row] and n % 3]
    prompts = {tuple(p for p in row if p >= 0) for row in rollout.prompt_ids.tolist()}
    expected = int(lengths[judged].sum()) + sum(map(len, prompts)) + sum(read)
    assert run.history[0]["tokens/backward"] == expected
    decoded = int(lengths.sum()) + int(rollout.continuations.mask.sum())
    assert run.history[0]["tokens/decoded"] == decoded
