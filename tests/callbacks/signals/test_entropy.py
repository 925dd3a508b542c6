import math

import pytest
import torch

from callbacks.signals.entropy import Entropy
from rlcredit.formulas.masked import masked_mean


def test_the_signal_is_the_entropy(rollout):
    Entropy().assign(rollout)
    assert torch.equal(rollout.signal, rollout.entropy)


def test_entropy_tells_apart_what_surprisal_cannot():
    # A tenth for the token drawn; the rest on one other token, or on a thousand: 0.469 and 9.435 bits.
    from rlcredit.formulas.uncertainty import logprobs_and_entropy

    peaked, spread = torch.tensor([0.1, 0.9] + [0.0] * 999), torch.tensor([0.1] + [0.9 / 1000] * 1000)
    peaked[2:] = 1e-30
    for p, bits in ((peaked, 0.469), (spread, 9.438)):
        logprob, entropy = logprobs_and_entropy(p.log()[None], torch.tensor([0]))
        assert logprob.item() == pytest.approx(math.log(0.1), abs=1e-5)
        assert entropy.item() / math.log(2) == pytest.approx(bits, abs=2e-3)


def test_the_mean_of_each_signal_and_its_distance_from_surprisal_are_logged(rollout):
    metrics = Entropy().assign(rollout)
    assert metrics["mean"] == masked_mean(rollout.entropy, rollout.mask)
    both = torch.stack([rollout.entropy[rollout.mask], -rollout.old_logprobs[rollout.mask]])
    assert metrics["surprisal_correlation"].item() == pytest.approx(torch.corrcoef(both)[0, 1].item(), abs=1e-5)
