"""Log-probabilities for an update: the gradient of credit against whole logits."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from rlcredit.losses import ClippedSurrogate, ImportanceSampling
from tests.slow_cases import mark_others_slow
from tests.whole_logits import PlainGradients, RandomCredit, differentiate, partly_judged_task, plain_loss

DENOMINATORS = [{}, {"denominator": "sequence"}, {"denominator": "constant", "constant": 24}]
FAST = [(3, DENOMINATORS[1], ClippedSurrogate), (None, DENOMINATORS[0], ImportanceSampling)]
CASES = list(itertools.product((None, 1, 3), DENOMINATORS, (ImportanceSampling, ClippedSurrogate)))


@pytest.mark.parametrize("case", mark_others_slow([*FAST, *(case for case in CASES if case not in FAST)], 2), ids=str)
def test_credit_of_alternatives_has_the_gradient_of_whole_logits(fit, case):
    micro_batch_size, how, kind = case
    plain = PlainGradients()
    fit(
        steps=2,
        stack=[RandomCredit(), plain],
        lr=1e-2,
        completions=4,
        max_tokens=24,
        task=partly_judged_task(),
        loss=kind(**how),
        micro_batch_size=micro_batch_size,
        updates_per_rollout=2,
        minibatches=2,
    )
    assert [rollout.judged.tolist() for rollout in plain.rollouts] == [[True, False, True, True]] * 2
    assert plain.furthest[0] < 1e-3 < 0.3 < plain.furthest[1]  # the second update clips
    for expected, real, losses, rollout in zip(plain.plain, plain.real, plain.losses, plain.rollouts):
        assert set(rollout.alternatives.rows.tolist()) == {0, 1, 2}
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
    assert module.rows_to_score(rollout).nonzero().flatten().tolist() == [4]
    expected = differentiate(module, plain_loss(module, rollout, rollout.credit))
    found = differentiate(module, module.compute_loss(rollout, module(rollout), rollout.credit))
    assert max(gradient.abs().max() for gradient in found.values()) > 1e-3
    for name in expected:
        assert_close(found[name], expected[name], atol=2e-6, rtol=1e-3)
