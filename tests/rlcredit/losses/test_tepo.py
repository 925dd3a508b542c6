import math

import pytest
import torch

from rlcredit.losses import GSPO, TEPO
from rlcredit.losses.tepo import tepo_mask
from tests.rlcredit.losses.batches import batch, by_hand, facts, value_and_gradient


def test_tepo_without_divergence_and_per_sequence_is_gspo():
    rollout = batch(4)
    one = value_and_gradient(TEPO(beta=0.0, denominator="sequence"), rollout)
    two = value_and_gradient(GSPO(), rollout)
    assert one[0] == two[0]
    assert torch.equal(one[1], two[1])


def test_tepo_reins_in_good_tokens_whose_entropy_falls_and_none_before_the_policy_has_moved():
    rollout = batch(7)
    arguments = (rollout.logprobs, rollout.advantages, rollout.mask)
    loss = TEPO()
    then = facts(loss, rollout, update=0)
    assert not loss.kl_mask(*arguments, **then).any()
    expected = rollout.mask & (rollout.advantages > 0) & (rollout.now < rollout.entropy)
    assert torch.equal(loss.kl_mask(*arguments, **facts(loss, rollout, update=1)), expected)
    assert expected.any()
    # The proxy: entropy is about to fall where a good token is likelier than tokens are on average.
    mean = rollout.logprobs[rollout.mask].mean()
    proxy = TEPO(reference="ref", first_update="covariance")
    predicted = rollout.mask & (rollout.advantages > 0) & (rollout.logprobs > mean)
    assert torch.equal(proxy.kl_mask(*arguments, **then), predicted)
    assert proxy.needs == {"entropy", "old_entropy", "update", "ref_logprobs"}
    assert TEPO.needs == {"entropy", "old_entropy", "update"}


def test_the_predicted_and_the_true_change_of_entropy_have_one_sign_in_the_simplest_case():
    # Three logits, a gradient step on one sampled token: entropy falls if the token was likelier than usual, A > 0.
    logits = torch.tensor([1.0, 0.2, -0.5], dtype=torch.float64)
    for token, sign in ((0, -1), (2, 1)):
        step = logits + 0.01 * (torch.nn.functional.one_hot(torch.tensor(token), 3) - logits.softmax(-1))
        entropy = [-(z.softmax(-1) * z.log_softmax(-1)).sum() for z in (logits, step)]
        assert torch.sign(entropy[1] - entropy[0]).item() == sign
        change = (entropy[1] - entropy[0])[None, None]
        assert tepo_mask(torch.ones(1, 1), change, torch.ones(1, 1, dtype=torch.bool)).item() == (sign < 0)


def test_a_negative_rein_and_an_unknown_reference_are_refused():
    with pytest.raises(ValueError, match="TEPO expects beta >= 0"):
        TEPO(beta=-1.0)
    with pytest.raises(ValueError, match="one of old, ref"):
        TEPO(reference="reference")


def test_a_good_token_that_grew_certain_is_reined_in():
    # Ratios 2 and 1 / 2 are 1 together. k3 of the first token: exp(-log 2) + log 2 - 1 = 0.193147.
    old = torch.tensor([[0.25, 0.5]]).log()
    told = {"entropy": torch.tensor([[0.5, 1.0]]), "old_entropy": torch.tensor([[1.0, 0.5]]), "update": 1}
    value, _, metrics = by_hand(TEPO(low=1.0, high=math.inf, beta=0.5), [[0.5, 0.25]], old, [[1.0, 1.0]], **told)
    assert value == pytest.approx(-(2 - 0.5 * 0.193147) / 2)
    assert metrics["reined"] == 0.5
