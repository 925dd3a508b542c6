"""The batch that cards are made from."""

from dataclasses import replace

import numpy as np
import pytest

from rlcredit.cards.card_batch import measure_card_batch
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.training.micro_batches import MicroBatches
from tests.rlcredit.cards.conftest import BUDGET, UNASKED


class Remote(Engine):
    """Draw as the embedded engine does, and tell no entropy."""

    closed = False

    def sample(self, policy, prompt_ids, prompts, sampling, *, seed, step):
        samples = InProcessEngine().sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step)
        return replace(samples, entropy=None, sum_pi_squared=None)

    def close(self):
        self.closed = True


@pytest.mark.slow
def test_any_engine_may_sample_the_batch_and_its_true_credit_is_found_in_this_process(batch, tmp_path):
    remote, own = Remote(), batch("GRPO")
    files = ["configs/tiny.yaml", str(resolve_card_condition("GRPO").write_files(tmp_path))]
    found = measure_card_batch(files, BUDGET, engine=remote)
    assert found.rollout.engine_logprobs is not None
    assert remote.closed
    assert found.rollout.tokens == own.rollout.tokens
    np.testing.assert_allclose(found.gradients, own.gradients, atol=1e-5)
    np.testing.assert_allclose(found.truth.credit, own.truth.credit, atol=1e-6)


@pytest.mark.slow
def test_where_memory_does_not_suffice_fewer_tokens_are_computed_at_a_time(batch, monkeypatch, tmp_path):
    whole, parts = batch("GTPO"), []
    choose = MicroBatches.choose_part

    def watch(self, *arguments, **options):
        parts.append(choose(self, *arguments, **options))
        return parts[-1]

    monkeypatch.setattr(MicroBatches, "choose_part", watch)
    monkeypatch.setattr(
        "rlcredit.training.micro_batches.find_memory_share", lambda device, processes: (2**24, "a small machine")
    )
    files = ["configs/tiny.yaml", str(resolve_card_condition("GTPO").write_files(tmp_path))]
    cut = measure_card_batch(files, UNASKED)
    assert any(part.is_recomputed for part in parts)
    np.testing.assert_allclose(cut.gradients, whole.gradients, atol=1e-6)
