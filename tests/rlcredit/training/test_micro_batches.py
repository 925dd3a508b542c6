import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from rlcredit.policy.policy import Policy
from rlcredit.training.micro_batches import MicroBatches, split_rows_by_tokens


@given(st.lists(st.integers(1, 50), min_size=1).map(sorted), st.integers(1, 400))
def test_parts_hold_every_row_once_and_no_more_tokens_than_allowed(lengths, tokens):
    cut = split_rows_by_tokens(lengths, tokens)
    assert [row for part in cut for row in range(part.start, part.stop)] == list(range(len(lengths)))
    for part in cut:
        assert part.stop - part.start == 1 or (part.stop - part.start) * lengths[part.stop - 1] <= tokens
    for one, two in itertools.pairwise(cut):  # none could have taken the first row of the next
        assert (one.stop + 1 - one.start) * lengths[two.start] > tokens


class Memory:
    """Enough for so many tokens."""

    def __init__(self, lengths, tokens):
        self.lengths, self.tokens, self.asked = lengths, tokens, []

    def __call__(self, part):
        self.asked.append((part.stop - part.start) * self.lengths[part.stop - 1])
        if self.asked[-1] > self.tokens:
            raise torch.OutOfMemoryError("CUDA out of memory.")


def test_auto_finds_what_fits_and_asks_once():
    batches, memory = MicroBatches("auto"), Memory([10] * 16, tokens=50)
    assert [part.stop - part.start for part in batches.split_batch(memory.lengths, memory)] == [4, 4, 4, 4]
    assert memory.asked == [160, 80, 40]
    assert len(batches.split_batch(memory.lengths, memory)) == 4
    assert memory.asked == [160, 80, 40]


def test_auto_asks_again_for_more_than_it_has_tried():
    batches, small, large = MicroBatches("auto"), Memory([10] * 4, tokens=60), Memory([20] * 8, tokens=60)
    assert len(batches.split_batch(small.lengths, small)) == 1
    assert [part.stop - part.start for part in batches.split_batch(large.lengths, large)] == [2, 2, 2, 2]


def test_where_not_even_one_row_fits_nothing_is_hidden():
    batches, memory = MicroBatches("auto"), Memory([10] * 4, tokens=5)
    with pytest.raises(torch.OutOfMemoryError):
        batches.split_batch(memory.lengths, memory)


@pytest.mark.parametrize("size", [0, -1])
def test_no_micro_batch_is_empty(size):
    with pytest.raises(ValueError, match="from 1 on, or auto"):
        MicroBatches(size)


def test_running_out_of_memory_changes_no_gradient(fit, monkeypatch):
    whole, widest, plain = fit(steps=3), [], Policy.predicting_states

    def read(self, context, completion_ids):
        if torch.is_grad_enabled() and context.of.shape[0] * (completion_ids.shape[1] + context.mask.shape[1]) > 300:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        widest.append(len(context.of))
        return plain(self, context, completion_ids)

    monkeypatch.setattr(Policy, "predicting_states", read)
    backed_off = fit(steps=3, micro_batch_size="auto")
    assert max(widest) < 8
    assert backed_off.losses == pytest.approx(whole.losses, abs=1e-6)
    for name, weight in whole.adapter.items():
        assert_close(backed_off.adapter[name], weight, atol=1e-5, rtol=1e-4)
