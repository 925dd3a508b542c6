import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.policy.memory import UpdateCost
from rlcredit.training.micro_batches import (
    LEAST_TOKENS,
    MicroBatches,
    Part,
    find_update_room,
    mark_new_prompts,
    split_rows_by_tokens,
    split_rows_in_order,
)
from tests.training_runs import assert_like_adapter

COST = UpdateCost(graph=100.0, checkpoint=10.0, layers=10)
UNCUT = UpdateCost(graph=100.0, checkpoint=None, layers=10)


@given(st.lists(st.integers(1, 50), min_size=1).map(sorted), st.integers(1, 400))
def test_parts_hold_every_row_once_and_no_more_tokens_than_allowed(lengths, tokens):
    cut = split_rows_by_tokens(lengths, tokens)
    assert [row for part in cut for row in range(part.start, part.stop)] == list(range(len(lengths)))
    for part in cut:
        assert part.stop - part.start == 1 or (part.stop - part.start) * lengths[part.stop - 1] <= tokens
    for one, two in itertools.pairwise(cut):  # none could have taken the first row of the next
        assert (one.stop + 1 - one.start) * lengths[two.start] > tokens


def test_without_padding_a_prompt_counts_once_in_each_part():
    prompts = torch.tensor([[1, 2, 3]] * 3 + [[1, 2, 4]] * 2)
    lengths, prompt_lengths = torch.tensor([4, 4, 4, 2, 9]), torch.full((5,), 3)
    assert split_rows_in_order(lengths, prompt_lengths, mark_new_prompts(prompts), 11) == [
        slice(0, 2),
        slice(2, 3),
        slice(3, 4),
        slice(4, 5),
    ]
    assert split_rows_in_order(lengths, prompt_lengths, mark_new_prompts(prompts), 15) == [slice(0, 3), slice(3, 5)]
    assert split_rows_in_order(lengths, prompt_lengths, mark_new_prompts(prompts), 29) == [slice(0, 5)]


@pytest.mark.parametrize("is_separate", [True, False])
def test_what_fits_is_computed_at_once(is_separate):
    batches = MicroBatches()
    batches.correction = 1.0
    assert batches.choose_part(COST, 500, 50_000, is_separate=is_separate) == Part(500)
    assert batches.choose_part(UNCUT, 500, 50_000, is_separate=is_separate) == Part(500)


def test_separate_parts_keep_their_graphs_as_long_as_they_are_large():
    batches, many = MicroBatches(), 10 * LEAST_TOKENS
    batches.correction = 1.0
    assert batches.choose_part(COST, many, 100 * LEAST_TOKENS, is_separate=True) == Part(LEAST_TOKENS)
    small = batches.choose_part(COST, many, 90 * LEAST_TOKENS, is_separate=True)
    assert small == Part(3 * LEAST_TOKENS, recomputed_layers=10)  # an input of 10 and two layers of 10 each
    assert batches.choose_part(UNCUT, many, 90 * LEAST_TOKENS, is_separate=True) == Part(int(0.9 * LEAST_TOKENS))


def test_parts_that_wait_for_the_loss_keep_as_many_layers_as_fit():
    batches, tokens = MicroBatches(), 4 * LEAST_TOKENS
    batches.correction = 1.0
    # A part takes 20 a token for a layer in its backward pass; all tokens take 10 for inputs, and 9 more a whole layer.
    room = LEAST_TOKENS * 20 + tokens * (10 + 3 * 9)
    assert batches.choose_part(COST, tokens, room, is_separate=False) == Part(LEAST_TOKENS, recomputed_layers=7)
    least = batches.choose_part(COST, tokens, tokens * 10, is_separate=False)
    assert least == Part(LEAST_TOKENS, recomputed_layers=10, is_recomputed=True)
    assert batches.choose_part(UNCUT, tokens, 900, is_separate=False) == Part(9, is_recomputed=True)


def test_a_number_of_tokens_is_kept_to_and_what_was_measured_corrects_the_forecast():
    batches = MicroBatches(200)
    assert batches.choose_part(COST, 500, 10**9, is_separate=True) == Part(200)
    assert batches.choose_part(COST, 500, 10**9, is_separate=False) == Part(200, recomputed_layers=10)
    assert batches.choose_part(UNCUT, 500, 10**9, is_separate=False) == Part(200, is_recomputed=True)
    auto = MicroBatches()
    assert auto.choose_part(UNCUT, 500, 50_000, is_separate=True).tokens == 384  # a forecast may err by 30 %
    auto.correction = 0.5
    assert auto.choose_part(UNCUT, 500, 25_000, is_separate=True).tokens == 500


def test_where_not_even_one_token_fits_one_is_tried():
    assert MicroBatches().choose_part(UNCUT, 500, 0, is_separate=True) == Part(1)


def test_the_room_of_an_update_follows_from_the_machine_alone(monkeypatch):
    monkeypatch.setattr("rlcredit.training.micro_batches.find_memory_share", lambda device, processes: (1000, "it"))
    assert find_update_room(torch.device("cpu"), 100, 10) == 500 - 100 - 120
    assert find_update_room(torch.device("cuda"), 100, 10) == 850 - 100 - 120


@pytest.mark.parametrize("tokens", [0, -1])
def test_no_micro_batch_is_empty(tokens):
    with pytest.raises(ValueError, match="from 1 on, or auto"):
        MicroBatches(tokens)


@pytest.mark.parametrize("is_whole", [True, False])
def test_little_memory_changes_no_gradient(is_whole, fit, monkeypatch):
    whole = fit(steps=3)
    rooms = iter([2e6 if is_whole else 1e5] * 99)
    monkeypatch.setattr("rlcredit.training.micro_batches.find_memory_share", lambda *_: (2 * next(rooms) + 4e6, "it"))
    cut = fit(steps=3)
    assert cut.losses == pytest.approx(whole.losses, abs=1e-6)
    assert_like_adapter(cut.adapter, whole.adapter)
